use super::{Answer, Operation, Route, at_most};
use crate::live::LiveTicketView;
use crate::problem::ProblemCode::*;

routes! {
    CreateLiveTicket = "POST" "/api/live/tickets" by "live-ticket" {
        summary: "Get a ticket for a live connection",
        description: "Opens one WebSocket connection within 60 seconds, at `url` with `?ticket=` and the ticket appended. \
                      `docs/live.md` describes the messages. A stack without an HTTP API of its own answers `live_unavailable`: \
                      poll the job there.",
        answers: &[Answer::of::<LiveTicketView>(201, "The ticket.")],
        problems: &[(404, LiveUnavailable), (429, TooManyConnections)],
        // All 500 connections of an owner may be lost at once, and each is opened by another ticket.
        limits: at_most(1200, 12_000),
    }
}
