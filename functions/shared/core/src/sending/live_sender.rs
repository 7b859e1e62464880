//! Sends to live connections, and gives up those that cannot be reached.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};

use crate::model::live::ConnectionId;
use crate::ports::{Clock, ConnectionSender, Connections, PortError, SendError};

/// Maximum number of sends of a message to a connection before the connection is given up.
pub const SEND_TRIES: u32 = 3;

pub const SEND_TIMEOUT: Duration = Duration::from_secs(2);

/// The backoff before a message is sent again.
pub const SEND_BACKOFF: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub struct LiveSender {
    pub connections: Arc<dyn Connections>,
    pub sender: Arc<dyn ConnectionSender>,
    pub clock: Arc<dyn Clock>,
}

#[derive(Debug)]
pub enum Tried {
    Sent,
    /// The connection was closed. Its rows are removed.
    Gone,
    /// It may or may not have arrived: try again, or give the connection up.
    Failed(PortError),
}

impl LiveSender {
    /// Tries to send a message once.
    ///
    /// # Errors
    /// `Denied`: no message can be sent to anyone. `Unavailable` if the rows of a closed connection cannot be removed.
    pub async fn try_send(&self, to: &ConnectionId, text: &str) -> Result<Tried, PortError> {
        const DOING: &str = "sending a live message";
        let sent = match select(self.sender.send(to, text), self.clock.sleep(SEND_TIMEOUT)).await {
            Either::Left((sent, _)) => sent,
            Either::Right(_) => Err(PortError::unavailable(DOING, "no answer in time").into()),
        };
        match sent {
            Ok(()) => Ok(Tried::Sent),
            Err(SendError::Gone) => self.connections.close(to).await.map(|()| Tried::Gone),
            Err(SendError::Port(error @ PortError::Denied { .. })) => Err(error),
            Err(SendError::Port(error)) => Ok(Tried::Failed(error)),
        }
    }

    /// Gives a connection up: removes its rows and hangs up, so that its client opens another one and gets the state
    /// that it missed.
    pub async fn give_up(&self, connection: &ConnectionId) -> Result<(), PortError> {
        // A connection that nobody can send to can often not be closed either. Without rows it is as good as closed.
        let _ = self.sender.hang_up(connection).await;
        self.connections.close(connection).await
    }

    /// Sends a message, in several tries. Returns whether it was sent. If not, the connection is closed or given up.
    pub async fn send(&self, to: &ConnectionId, text: &str) -> Result<bool, PortError> {
        for tried in 1..=SEND_TRIES {
            match self.try_send(to, text).await? {
                Tried::Sent => return Ok(true),
                Tried::Gone => return Ok(false),
                Tried::Failed(_) if tried < SEND_TRIES => self.clock.sleep(SEND_BACKOFF).await,
                Tried::Failed(_) => {}
            }
        }
        self.give_up(to).await?;
        Ok(false)
    }
}
