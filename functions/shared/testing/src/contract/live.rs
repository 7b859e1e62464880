//! The contracts of [`Tickets`], [`Connections`] and [`Subscriptions`].

use std::collections::BTreeSet;

use futures::future::join_all;
use uuid::Uuid;

use super::{at, run_checks};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::live::{Connection, ConnectionId, Ticket, TicketDigest, Topic, Watcher};
use rowmill_core::ports::{Connections, PortError, Subscribed, Subscriptions, Tickets};

/// Checks an adapter of [`Tickets`], [`Connections`] and [`Subscriptions`].
///
/// # Panics
/// If the adapter breaks a promise of a port.
pub async fn live<S: Tickets + Connections + Subscriptions>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        a_ticket_is_redeemed_once,
        of_concurrent_calls_one_redeems_the_ticket,
        an_expired_ticket_is_worth_nothing,
        a_connection_is_known_until_it_is_closed_or_forgotten,
        connections_are_counted_for_each_owner,
        a_subscription_is_seen_until_it_is_removed,
        a_connection_has_so_many_subscriptions_at_most,
        concurrent_subscriptions_are_added_exactly,
        a_closed_connection_cannot_subscribe,
        a_watcher_tells_when_its_connection_ends,
        an_owner_sees_only_its_own_watchers,
    );
}

fn owner(name: &str) -> Owner {
    Owner(name.into())
}

/// A ticket until second 60, for a connection until second 900.
fn ticket(name: &str) -> Ticket {
    Ticket { owner: owner(name), until: at(60), connection_until: at(900) }
}

fn connection(number: u8, name: &str) -> Connection {
    Connection { id: ConnectionId(format!("c{number}=")), owner: owner(name), until: at(1000) }
}

fn job(number: u128) -> Topic {
    Topic::Job(JobGuid(Uuid::from_u128(number)))
}

fn watcher(connection: &Connection, topics: &[Topic]) -> Watcher {
    let (topics, until) = (topics.iter().copied().collect(), connection.until);
    Watcher { connection: connection.id.clone(), until, topics }
}

async fn watchers(store: &impl Subscriptions, name: &str) -> BTreeSet<Watcher> {
    store.watchers(&owner(name)).await.unwrap().into_iter().collect()
}

async fn a_ticket_is_redeemed_once(store: &impl Tickets) {
    let (first, second) = (TicketDigest::of("a"), TicketDigest::of("b"));
    store.issue(&first, &ticket("me")).await.unwrap();
    store.issue(&second, &ticket("größe of Rome")).await.unwrap();
    assert_eq!(store.redeem(&first, at(1)).await.unwrap(), Some(ticket("me")));
    assert_eq!(store.redeem(&first, at(1)).await.unwrap(), None);
    assert_eq!(store.redeem(&TicketDigest::of("c"), at(1)).await.unwrap(), None);
    assert_eq!(store.redeem(&second, at(1)).await.unwrap(), Some(ticket("größe of Rome")));
}

async fn of_concurrent_calls_one_redeems_the_ticket(store: &impl Tickets) {
    let digest = TicketDigest::of("a");
    store.issue(&digest, &ticket("me")).await.unwrap();
    let redeemed = join_all((0..20).map(|_| store.redeem(&digest, at(1)))).await;
    assert_eq!(redeemed.iter().filter(|ticket| matches!(ticket, Ok(Some(_)))).count(), 1, "{redeemed:?}");
}

async fn an_expired_ticket_is_worth_nothing(store: &impl Tickets) {
    let digest = TicketDigest::of("a");
    store.issue(&digest, &ticket("me")).await.unwrap();
    assert_eq!(store.redeem(&digest, at(60)).await.unwrap(), None);
}

async fn a_connection_is_known_until_it_is_closed_or_forgotten(store: &impl Connections) {
    let connection = connection(1, "me");
    let missing = store.connection(&connection.id, at(0)).await;
    assert!(matches!(missing, Err(PortError::NotFound)), "{missing:?}");
    for _ in 0..2 {
        store.open(&connection).await.unwrap();
    }
    assert_eq!(store.connection(&connection.id, at(999)).await.unwrap(), connection);
    let forgotten = store.connection(&connection.id, at(1000)).await;
    assert!(matches!(forgotten, Err(PortError::NotFound)), "{forgotten:?}");
    for _ in 0..2 {
        store.close(&connection.id).await.unwrap();
    }
    let closed = store.connection(&connection.id, at(0)).await;
    assert!(matches!(closed, Err(PortError::NotFound)), "{closed:?}");
}

async fn connections_are_counted_for_each_owner(store: &impl Connections) {
    for number in 1..=3 {
        store.open(&connection(number, "me")).await.unwrap();
    }
    store.open(&connection(9, "you")).await.unwrap();
    assert_eq!(store.count(&owner("me"), 10, at(0)).await.unwrap(), 3);
    assert_eq!(store.count(&owner("me"), 2, at(0)).await.unwrap(), 2);
    assert_eq!(store.count(&owner("she"), 10, at(0)).await.unwrap(), 0);
    assert_eq!(store.count(&owner("me"), 10, at(1000)).await.unwrap(), 0, "forgotten");
    store.close(&connection(2, "me").id).await.unwrap();
    assert_eq!(store.count(&owner("me"), 10, at(0)).await.unwrap(), 2);
}

async fn a_subscription_is_seen_until_it_is_removed<S: Connections + Subscriptions>(store: &S) {
    let (first, second) = (connection(1, "me"), connection(2, "me"));
    store.open(&first).await.unwrap();
    store.open(&second).await.unwrap();
    assert_eq!(watchers(store, "me").await, BTreeSet::new(), "nobody has subscribed");
    for _ in 0..2 {
        assert_eq!(store.subscribe(&first, job(1), 10).await.unwrap(), Subscribed::Yes);
    }
    store.subscribe(&first, job(2), 10).await.unwrap();
    store.subscribe(&second, Topic::Mine, 10).await.unwrap();
    let expected = [watcher(&first, &[job(1), job(2)]), watcher(&second, &[Topic::Mine])];
    assert_eq!(watchers(store, "me").await, BTreeSet::from(expected));
    for _ in 0..2 {
        store.unsubscribe(&first, job(1)).await.unwrap();
    }
    store.unsubscribe(&second, Topic::Mine).await.unwrap();
    assert_eq!(watchers(store, "me").await, BTreeSet::from([watcher(&first, &[job(2)])]));
    store.subscribe(&second, Topic::Mine, 10).await.unwrap();
    store.close(&first.id).await.unwrap();
    assert_eq!(watchers(store, "me").await, BTreeSet::from([watcher(&second, &[Topic::Mine])]));
}

async fn a_connection_has_so_many_subscriptions_at_most<S: Connections + Subscriptions>(store: &S) {
    let connection = connection(1, "me");
    store.open(&connection).await.unwrap();
    store.subscribe(&connection, job(1), 2).await.unwrap();
    store.subscribe(&connection, job(2), 2).await.unwrap();
    assert_eq!(store.subscribe(&connection, job(3), 2).await.unwrap(), Subscribed::Full);
    assert_eq!(store.subscribe(&connection, job(2), 2).await.unwrap(), Subscribed::Yes, "it is there already");
    store.unsubscribe(&connection, job(1)).await.unwrap();
    assert_eq!(store.subscribe(&connection, Topic::Mine, 2).await.unwrap(), Subscribed::Yes);
    assert_eq!(watchers(store, "me").await, BTreeSet::from([watcher(&connection, &[job(2), Topic::Mine])]));
}

async fn concurrent_subscriptions_are_added_exactly<S: Connections + Subscriptions>(store: &S) {
    let connection = &connection(1, "me");
    store.open(connection).await.unwrap();
    let added = join_all((0..30).map(|number| store.subscribe(connection, job(number), 10))).await;
    assert_eq!(added.iter().filter(|added| matches!(added, Ok(Subscribed::Yes))).count(), 10, "{added:?}");
    assert_eq!(watchers(store, "me").await.first().unwrap().topics.len(), 10);
}

async fn a_closed_connection_cannot_subscribe<S: Connections + Subscriptions>(store: &S) {
    let connection = connection(1, "me");
    store.open(&connection).await.unwrap();
    store.close(&connection.id).await.unwrap();
    let refused = store.subscribe(&connection, job(1), 10).await;
    assert!(matches!(refused, Err(PortError::NotFound)), "{refused:?}");
    store.unsubscribe(&connection, job(1)).await.unwrap();
    assert_eq!(watchers(store, "me").await, BTreeSet::new());
}

async fn a_watcher_tells_when_its_connection_ends<S: Connections + Subscriptions>(store: &S) {
    let ending = [(1, 60), (2, 1000)].map(|(number, end)| Connection { until: at(end), ..connection(number, "me") });
    for connection in &ending {
        store.open(connection).await.unwrap();
        store.subscribe(connection, job(1), 10).await.unwrap();
    }
    assert_eq!(watchers(store, "me").await, ending.each_ref().map(|ending| watcher(ending, &[job(1)])).into());
}

async fn an_owner_sees_only_its_own_watchers<S: Connections + Subscriptions>(store: &S) {
    let (mine, yours) = (connection(1, "me"), connection(2, "you"));
    for connection in [&mine, &yours] {
        store.open(connection).await.unwrap();
        store.subscribe(connection, Topic::Mine, 10).await.unwrap();
    }
    assert_eq!(watchers(store, "me").await, BTreeSet::from([watcher(&mine, &[Topic::Mine])]));
}
