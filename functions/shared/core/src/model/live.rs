//! Live connections: the tickets that open them, and what they watch.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::ids::{JobGuid, Owner};
use crate::model::sha256::sha256_hex;

/// Lifetime of an unused ticket.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(60);

/// Longest retention of a connection, from the issue of its ticket. API Gateway closes every connection after two
/// hours; the rest is for the ticket and the clocks.
pub const CONNECTION_LIFETIME: Duration = Duration::from_secs(130 * 60);

/// The SHA-256 of a ticket, in hexadecimal. Only this is stored, so nobody can open a connection with what they read in
/// the table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TicketDigest(String);

impl TicketDigest {
    pub fn of(ticket: &str) -> Self {
        Self(sha256_hex(ticket))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a ticket opens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    pub owner: Owner,
    /// When it expires, in whole seconds.
    pub until: Timestamp,
    /// When its connection ends, in whole seconds: with the token of the one who asked for it, at the latest.
    pub connection_until: Timestamp,
}

/// The name of a connection, as API Gateway gives it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub String);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    pub id: ConnectionId,
    /// The owner whose ticket opened it.
    pub owner: Owner,
    /// When it ends, in whole seconds: nothing is sent to it any more, and it is hung up on.
    pub until: Timestamp,
}

/// Subject of a subscription.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Topic {
    Job(JobGuid),
    /// All jobs of the owner, also those that are created later.
    Mine,
}

impl Topic {
    const MINE: &str = "mine";
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => job.fmt(f),
            Self::Mine => f.write_str(Self::MINE),
        }
    }
}

impl FromStr for Topic {
    type Err = <JobGuid as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == Self::MINE { Ok(Self::Mine) } else { text.parse().map(Self::Job) }
    }
}

/// A connection and its subscriptions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Watcher {
    pub connection: ConnectionId,
    /// When the connection ends.
    pub until: Timestamp,
    pub topics: BTreeSet<Topic>,
}

impl Watcher {
    pub fn watches(&self, job: JobGuid) -> bool {
        self.topics.contains(&Topic::Mine) || self.topics.contains(&Topic::Job(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_topic_reads_back_as_it_was_written() {
        for topic in [Topic::Mine, Topic::Job(JobGuid(Uuid::from_u128(7)))] {
            assert_eq!(topic.to_string().parse::<Topic>().unwrap(), topic);
        }
        assert!("yours".parse::<Topic>().is_err());
    }

    #[test]
    fn the_digest_of_a_ticket_is_its_sha_256() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(TicketDigest::of("abc").as_str(), expected);
    }
}
