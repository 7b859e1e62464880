use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use jiff::Timestamp;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::live::{
    CONNECTION_LIFETIME, Connection, ConnectionId, TICKET_LIFETIME, Ticket, TicketDigest, Topic,
};
use rowmill_core::ports::{Clock, Connections, PortError, Subscriptions, Tickets};
use rowmill_testing::in_memory::{InMemoryLive, ManualClock};
use tokio::sync::Barrier;

use crate::connect::{Doorkeeper, Opened};

struct World {
    door: Doorkeeper,
    live: Arc<InMemoryLive>,
    clock: Arc<ManualClock>,
}

async fn world() -> World {
    let (live, clock) = (Arc::new(InMemoryLive::default()), Arc::new(ManualClock::default()));
    live.issue(&TicketDigest::of("good"), &ticket(clock.now())).await.unwrap();
    let door = Doorkeeper { tickets: live.clone(), connections: live.clone(), clock: clock.clone(), per_owner: 3 };
    World { door, live, clock }
}

/// A ticket of `me` that is issued now, of a token for an hour.
fn ticket(now: Timestamp) -> Ticket {
    let connection_until = now + Duration::from_secs(3600);
    Ticket { owner: Owner("me".into()), until: now + TICKET_LIFETIME, connection_until }
}

fn id(name: &str) -> ConnectionId {
    ConnectionId(name.to_owned())
}

#[tokio::test]
async fn a_ticket_opens_one_connection_of_its_owner() {
    let world = world().await;
    assert_eq!(world.door.connect(id("a"), "bad").await.unwrap(), Opened::NoTicket);
    assert_eq!(world.door.connect(id("b"), "good").await.unwrap(), Opened::Yes);
    assert_eq!(world.door.connect(id("c"), "good").await.unwrap(), Opened::NoTicket, "it is used up");
    let connection = world.live.connection(&id("b"), world.clock.now()).await.unwrap();
    assert_eq!(connection.owner, Owner("me".into()));
    assert_eq!(connection.until, ticket(world.clock.now()).connection_until, "it ends with the token");
    assert!(world.live.connection(&id("c"), world.clock.now()).await.is_err());
}

#[tokio::test]
async fn an_expired_ticket_opens_none() {
    let world = world().await;
    world.clock.advance(TICKET_LIFETIME);
    assert_eq!(world.door.connect(id("a"), "good").await.unwrap(), Opened::NoTicket);
}

#[tokio::test]
async fn a_closed_connection_watches_nothing() {
    let world = world().await;
    world.door.connect(id("a"), "good").await.unwrap();
    let connection = world.live.connection(&id("a"), world.clock.now()).await.unwrap();
    world.live.subscribe(&connection, Topic::Mine, 1).await.unwrap();
    world.door.disconnect(&id("a")).await.unwrap();
    assert_eq!(world.live.watchers(&connection.owner).await.unwrap(), []);
}

#[tokio::test]
async fn many_tickets_open_no_more_connections_than_an_owner_may_have() {
    let world = world().await;
    for number in 0..10 {
        world.live.issue(&TicketDigest::of(&number.to_string()), &ticket(world.clock.now())).await.unwrap();
    }
    let mut opened = Vec::new();
    for ticket in 0..5 {
        opened.push(world.door.connect(id(&format!("c{ticket}")), &ticket.to_string()).await.unwrap());
    }
    assert_eq!(opened, [Opened::Yes, Opened::Yes, Opened::Yes, Opened::TooMany, Opened::TooMany]);
    let me = Owner("me".into());
    assert_eq!(world.live.count(&me, 100, world.clock.now()).await.unwrap(), 3, "a refused one leaves no rows");
    world.door.disconnect(&id("c1")).await.unwrap();
    assert_eq!(world.door.connect(id("d"), "5").await.unwrap(), Opened::Yes, "there is room again");
    world.clock.advance(CONNECTION_LIFETIME);
    world.live.issue(&TicketDigest::of("late"), &ticket(world.clock.now())).await.unwrap();
    assert_eq!(world.door.connect(id("e"), "late").await.unwrap(), Opened::Yes, "forgotten ones do not count");
}

/// Connections whose count waits until so many have been opened.
struct AtOnce {
    live: Arc<InMemoryLive>,
    all_open: Barrier,
}

#[async_trait]
impl Connections for AtOnce {
    async fn open(&self, connection: &Connection) -> Result<(), PortError> {
        self.live.open(connection).await
    }

    async fn connection(&self, id: &ConnectionId, now: Timestamp) -> Result<Connection, PortError> {
        self.live.connection(id, now).await
    }

    async fn close(&self, id: &ConnectionId) -> Result<(), PortError> {
        self.live.close(id).await
    }

    async fn count(&self, owner: &Owner, most: usize, now: Timestamp) -> Result<usize, PortError> {
        self.all_open.wait().await;
        self.live.count(owner, most, now).await
    }
}

#[tokio::test]
async fn connections_that_are_opened_at_the_same_moment_do_not_exceed_the_limit() {
    let mut world = world().await;
    for number in 0..8 {
        world.live.issue(&TicketDigest::of(&number.to_string()), &ticket(world.clock.now())).await.unwrap();
    }
    world.door.connections = Arc::new(AtOnce { live: world.live.clone(), all_open: Barrier::new(8) });
    let (door, names) = (&world.door, (0..8).map(|number: u32| number.to_string()).collect::<Vec<_>>());
    let opened = join_all(names.iter().map(|name| door.connect(id(name), name))).await;
    let open = opened.iter().filter(|opened| matches!(opened, Ok(Opened::Yes))).count();
    assert!(open <= 3, "{opened:?}");
    assert_eq!(world.live.count(&Owner("me".into()), 100, world.clock.now()).await.unwrap(), open);
}
