//! The hash chain over what an audit reads. Its form is documented in `docs/protocol.md`.

use serde::{Deserialize, Serialize};

use crate::model::audit::AUDIT_FORM;
use crate::model::ids::JobGuid;
use crate::model::sha256::sha256_hex;
use crate::model::tally::Tally;

/// A link of the chain, in hexadecimal digits.
///
/// The next link is the SHA-256 of this one, a line feed, the line that is added, and a line feed. So the chain does
/// not depend on how many requests the walk took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Evidence(String);

impl Evidence {
    pub(super) fn begin(job: JobGuid) -> Self {
        Self(sha256_hex(format!("{AUDIT_FORM}\njob {job}\n")))
    }

    pub(super) fn add(&mut self, line: &str) {
        self.0 = sha256_hex(format!("{}\n{line}\n", self.0));
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// True if it is a link, as far as that can be told.
    pub(super) fn is_well_formed(&self) -> bool {
        self.0.len() == 64 && self.0.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}

/// The line of a tally, with the digest of its chunk index if that could be read.
pub(super) fn tally_line(tally: &Tally, index: Option<&[u8]>) -> String {
    let marks = tally.marks.iter().map(|mark| match mark {
        None => "-".to_owned(),
        Some(mark) => mark.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
    });
    let marks: Vec<String> = marks.collect();
    let Tally { attempt, number, expected, items, done, counts, bytes, start, .. } = tally;
    format!(
        "tally {attempt} {number} {expected} {items} {done} {} {} {} {bytes} {} {} {} {}",
        counts.succeeded,
        counts.failed,
        counts.skipped,
        start.offset,
        start.row,
        marks.join(","),
        index.map_or_else(|| "-".to_owned(), sha256_hex)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_depends_on_every_line_and_on_their_order() {
        let job: JobGuid = "01a1f997-c087-7785-ba44-fdac1155c2bf".parse().unwrap();
        let chain = |lines: &[&str]| {
            let mut evidence = Evidence::begin(job);
            lines.iter().for_each(|line| evidence.add(line));
            evidence
        };
        assert_eq!(chain(&["a", "b"]), chain(&["a", "b"]));
        for other in [&["b", "a"][..], &["a"], &["a", "b", ""], &["a\nb"]] {
            assert_ne!(chain(&["a", "b"]), chain(other), "{other:?}");
        }
        let expected = sha256_hex(format!("{}\na\n", chain(&[]).as_str()));
        assert_eq!(chain(&["a"]).as_str(), expected);
        assert!(chain(&["a"]).is_well_formed());
        assert!(!Evidence("A".repeat(64)).is_well_formed() && !Evidence(String::new()).is_well_formed());
    }
}
