//! The names of jobs, uploads, owners and runs.

use std::fmt;
use std::str::FromStr;

pub use rowmill_api::ids::{FileGuid, JobGuid, Owner};
use serde::{Deserialize, Serialize};

/// Names one run: a single try of a function at a piece of work (56 random bits).
///
/// A commit carries it, so that a run whose reply was lost recognises its own write. The keys of a run's objects carry
/// it too, so that the objects of a run that lost its commit are never read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunId([u8; RunId::BYTES]);

impl RunId {
    /// The length of a run id; with the kind before it, the mark of a chunk has 8 bytes.
    pub const BYTES: usize = 7;

    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

/// The text is not a run id: a run id has 14 hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("a run id is {} hexadecimal digits", RunId::BYTES * 2)]
pub struct InvalidRunId;

impl FromStr for RunId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != Self::BYTES * 2 || !text.is_ascii() {
            return Err(InvalidRunId);
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| InvalidRunId)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| InvalidRunId)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for RunId {
    type Error = InvalidRunId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_reads_back_as_it_was_written() {
        let run = RunId::from_bytes([0, 1, 0x7f, 0x80, 0xff, 9, 16]);
        assert_eq!(run.to_string(), "00017f80ff0910");
        assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        assert!("00017f80ff09".parse::<RunId>().is_err());
        assert!("zz017f80ff0910".parse::<RunId>().is_err());
        assert!("é0017f80ff091".parse::<RunId>().is_err());
    }
}
