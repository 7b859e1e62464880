use std::sync::Arc;
use std::time::Duration;

use rowmill_core::model::ids::Owner;
use rowmill_core::model::live::{CONNECTION_LIFETIME, Connection, ConnectionId, TICKET_LIFETIME, Ticket, TicketDigest};
use rowmill_core::ports::{Clock, Connections, Tickets};
use rowmill_testing::in_memory::{CountingEntropy, InMemoryLive, ManualClock};

use crate::issue::{TicketError, TicketOffice};

fn office() -> (TicketOffice, Arc<InMemoryLive>, Arc<ManualClock>) {
    let (live, clock) = (Arc::new(InMemoryLive::default()), Arc::new(ManualClock::default()));
    let office = TicketOffice {
        tickets: live.clone(),
        connections: live.clone(),
        clock: clock.clone(),
        entropy: Arc::new(CountingEntropy::default()),
        url: "wss://live".to_owned(),
        per_owner: 2,
    };
    (office, live, clock)
}

fn me() -> Owner {
    Owner("me".into())
}

#[tokio::test]
async fn a_ticket_is_of_its_owner_and_stored_as_a_digest_only() {
    let (office, live, clock) = office();
    let view = office.issue(&me(), None).await.unwrap();
    assert_eq!((view.url.as_str(), view.ticket.len()), ("wss://live", 64));
    assert_eq!(view.expires_at, clock.now() + TICKET_LIFETIME);
    let digest = TicketDigest::of(&view.ticket);
    assert_ne!(digest.as_str(), view.ticket);
    let until = [TICKET_LIFETIME, CONNECTION_LIFETIME].map(|lifetime| clock.now() + lifetime);
    let expected = Ticket { owner: me(), until: until[0], connection_until: until[1] };
    assert_eq!(live.redeem(&digest, clock.now()).await.unwrap(), Some(expected));
    assert_ne!(office.issue(&me(), None).await.unwrap().ticket, view.ticket);
}

#[tokio::test]
async fn neither_a_ticket_nor_its_connection_outlives_the_token() {
    let (office, live, clock) = office();
    for (token, ticket) in [(3600, TICKET_LIFETIME), (20, Duration::from_secs(20))] {
        let token_until = clock.now() + Duration::from_secs(token);
        let view = office.issue(&me(), Some(token_until)).await.unwrap();
        assert_eq!(view.expires_at, clock.now() + ticket);
        let issued = live.redeem(&TicketDigest::of(&view.ticket), clock.now()).await.unwrap().unwrap();
        assert_eq!((issued.until, issued.connection_until), (view.expires_at, token_until));
    }
}

#[tokio::test]
async fn an_owner_with_too_many_connections_gets_no_ticket() {
    let (office, live, clock) = office();
    for number in 0..2 {
        office.issue(&me(), None).await.unwrap();
        let id = ConnectionId(format!("c{number}"));
        live.open(&Connection { id, owner: me(), until: clock.now() + TICKET_LIFETIME }).await.unwrap();
    }
    let refused = office.issue(&me(), None).await;
    assert!(matches!(refused, Err(TicketError::TooManyConnections(2))), "{refused:?}");
    office.issue(&Owner("you".into()), None).await.unwrap();
}
