//! Lanes: how at most N chunks of a job type run at once.
//!
//! A job type with `concurrency` N has N lanes. Each chunk goes on one of them, and a lane lets one message through at
//! a time: the next one waits until the one before is acknowledged, becomes a dead letter, or is visible again. A lane
//! is a message group of the lanes queue. The setting counts when a message is sent, and again when it is received: so
//! it also holds for messages that were sent before it was changed.

use crate::model::job_type_limits::JobTypeLimits;
use crate::model::messages::ChunkMessage;

/// The lane of a message: the number of lanes of its job type, and which of them.
pub fn lane_of(limits: &JobTypeLimits, message: &ChunkMessage) -> Option<u32> {
    let concurrency = limits.of(message.job_type.as_deref()?).concurrency?;
    // The chunks of a job take turns. Jobs begin at different lanes, or small jobs would all share the first one.
    let start = message.job_guid.0.as_u64_pair().1;
    u32::try_from(start.wrapping_add(message.address.number()) % u64::from(concurrency.max(1))).ok()
}

/// True if a message of this job type was received beside the lanes of its type, so that too many chunks might run at
/// once: it was sent before the type had lanes, or on a lane that the type no longer has.
pub fn is_astray(limits: &JobTypeLimits, job_type: &str, message: &ChunkMessage) -> bool {
    limits.of(job_type).concurrency.is_some_and(|lanes| message.lane.is_none_or(|lane| lane >= lanes))
}

pub fn group_of(job_type: &str, lane: u32) -> String {
    format!("{job_type}#{lane}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fixtures;

    fn limits(json: &str) -> JobTypeLimits {
        JobTypeLimits::parse(json).unwrap()
    }

    fn message(job: u128, tally: u32, index: u8) -> ChunkMessage {
        let mut message = fixtures::chunk_message(tally, index);
        message.job_guid.0 = uuid::Uuid::from_u128(job);
        message.job_type = Some("render".to_owned());
        message
    }

    #[test]
    fn the_chunks_of_a_job_take_turns_on_all_lanes_of_its_type() {
        let three = limits(r#"{"render": {"concurrency": 3}}"#);
        let lanes: Vec<_> = (60..64).map(|index| (0, index)).chain([(1, 0), (1, 1)]).collect();
        let lanes: Vec<_> =
            lanes.into_iter().map(|(tally, index)| lane_of(&three, &message(5, tally, index)).unwrap()).collect();
        assert!(lanes.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 3), "{lanes:?}");
        let one = limits(r#"{"render": {"concurrency": 1}}"#);
        assert!((0..64).all(|index| lane_of(&one, &message(u128::MAX, 1, index)) == Some(0)));
    }

    #[test]
    fn jobs_of_one_chunk_use_all_lanes() {
        let three = limits(r#"{"render": {"concurrency": 3}}"#);
        let lanes: BTreeSet<_> = (0..20).map(|job| lane_of(&three, &message(job * 7919, 0, 0))).collect();
        assert_eq!(lanes, [Some(0), Some(1), Some(2)].into());
    }

    #[test]
    fn a_type_without_concurrency_has_no_lane() {
        let others = limits(r#"{"render": {"activeJobs": 3}, "import": {"concurrency": 1}}"#);
        assert_eq!(lane_of(&others, &message(1, 0, 0)), None);
        let of_older_version = ChunkMessage { job_type: None, ..message(1, 0, 0) };
        assert_eq!(lane_of(&limits(r#"{"render": {"concurrency": 1}}"#), &of_older_version), None);
    }

    #[test]
    fn a_message_that_is_on_no_lane_of_its_type_is_astray() {
        let two = limits(r#"{"render": {"concurrency": 2}}"#);
        let on = |lane| ChunkMessage { lane, ..message(1, 0, 0) };
        assert!(is_astray(&two, "render", &on(None)), "sent before the type had lanes");
        assert!(!is_astray(&two, "render", &on(Some(1))));
        assert!(is_astray(&two, "render", &on(Some(2))), "sent when there were more");
        assert!(!is_astray(&two, "import", &on(None)));
        assert!(!is_astray(&two, "import", &on(Some(0))), "nothing limits it any more");
    }
}
