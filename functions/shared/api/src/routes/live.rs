use super::{Answer, Json, Operation, Route};
use crate::live::LiveTicketView;
use crate::problem::ProblemCode::*;

routes!(Route {
    operation: CreateLiveTicket,
    method: "POST",
    path: "/api/live/tickets",
    function: "live-ticket",
    summary: "Get a ticket for a live connection",
    description: "Opens one WebSocket connection within 60 seconds, at `url` with `?ticket=` and the ticket appended. \
                      `docs/live.md` describes the messages. A stack without an HTTP API of its own answers `live_unavailable`: \
                      poll the job there.",
    parameters: &[],
    body: None,
    answers: &[Answer { status: 201, description: "The ticket.", json: &[Json::of::<LiveTicketView>()], headers: &[] }],
    problems: &[(404, LiveUnavailable), (429, TooManyConnections)],
    guarded: true,
},);
