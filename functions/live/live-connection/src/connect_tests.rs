use std::sync::Arc;

use rowmill_core::in_memory::{InMemoryLive, ManualClock};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::live::{CONNECTION_LIFETIME, ConnectionId, TICKET_LIFETIME, TicketDigest, Topic};
use rowmill_core::ports::{Clock, Connections, Subscriptions, Tickets};

use crate::connect::Doorkeeper;

struct World {
    door: Doorkeeper,
    live: Arc<InMemoryLive>,
    clock: Arc<ManualClock>,
}

async fn world() -> World {
    let (live, clock) = (Arc::new(InMemoryLive::default()), Arc::new(ManualClock::default()));
    let until = clock.now() + TICKET_LIFETIME;
    live.issue(&TicketDigest::of("good"), &Owner("me".into()), until).await.unwrap();
    let door = Doorkeeper { tickets: live.clone(), connections: live.clone(), clock: clock.clone() };
    World { door, live, clock }
}

fn id(name: &str) -> ConnectionId {
    ConnectionId(name.to_owned())
}

#[tokio::test]
async fn a_ticket_opens_one_connection_of_its_owner() {
    let world = world().await;
    assert!(!world.door.connect(id("a"), "bad").await.unwrap());
    assert!(world.door.connect(id("b"), "good").await.unwrap());
    assert!(!world.door.connect(id("c"), "good").await.unwrap(), "it is used up");
    let connection = world.live.connection(&id("b"), world.clock.now()).await.unwrap();
    assert_eq!(connection.owner, Owner("me".into()));
    assert_eq!(connection.until, world.clock.now() + CONNECTION_LIFETIME);
    assert!(world.live.connection(&id("c"), world.clock.now()).await.is_err());
}

#[tokio::test]
async fn an_expired_ticket_opens_none() {
    let world = world().await;
    world.clock.advance(TICKET_LIFETIME);
    assert!(!world.door.connect(id("a"), "good").await.unwrap());
}

#[tokio::test]
async fn a_closed_connection_watches_nothing() {
    let world = world().await;
    world.door.connect(id("a"), "good").await.unwrap();
    let connection = world.live.connection(&id("a"), world.clock.now()).await.unwrap();
    world.live.subscribe(&connection, Topic::Mine, 1).await.unwrap();
    world.door.disconnect(&id("a")).await.unwrap();
    assert_eq!(world.live.watchers(&connection.owner, world.clock.now()).await.unwrap(), []);
}
