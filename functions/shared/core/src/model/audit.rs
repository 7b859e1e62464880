//! The audit of a job: its counts, recomputed from what is stored.
//!
//! Its answer is a proof: a document with a canonical form, whose digest the client checks with the same code.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::ids::JobGuid;
use crate::model::job::states::Status;
use crate::model::sha256::sha256_hex;
use crate::words::{Open, words};

/// The version of the canonical forms that `evidence` and `digest` are made of. It stands in their first line.
pub const AUDIT_FORM: &str = "rowmill-audit/1";

words! {
    /// What an audit came to.
    AuditVerdict {
        /// The job has ended, all of it was read, and every chunk is accounted for exactly once.
        Proved = "proved",
        /// As `proved`, but objects of earlier attempts have expired. Their counts are taken from their tallies.
        ProvedInPart = "proved_in_part",
        /// The job has not ended. Every counted tally agrees with its chunk index, its marks and its run outputs.
        Active = "active",
        /// Nothing is wrong so far. Ask again with `next` for the rest.
        Continues = "continues",
        /// Something does not hold. `finding` names the first such thing.
        Refuted = "refuted",
    }
}

words! {
    /// What does not hold.
    AuditCode {
        /// The totals of an ended attempt do not say how many tallies it has.
        TotalsMissing = "totals_missing",
        /// A tally does not exist.
        TallyMissing = "tally_missing",
        /// A tally of an ended attempt is not closed: chunks of it have no outcome.
        TallyOpen = "tally_open",
        /// The chunk index of a tally does not exist.
        ChunkIndexMissing = "chunk_index_missing",
        /// The chunk index of a tally cannot be read.
        ChunkIndexInvalid = "chunk_index_invalid",
        /// A tally and its chunk index have different numbers of chunks or items, or begin at different places.
        ChunkIndexDiffers = "chunk_index_differs",
        /// A chunk holds rows that the chunks before it hold too.
        ChunkRepeated = "chunk_repeated",
        /// Rows between two chunks are in no chunk.
        ChunkGap = "chunk_gap",
        /// A chunk counts as committed and has no mark.
        MarkMissing = "mark_missing",
        /// A tally has a mark of a chunk that does not exist, or more marks than committed chunks.
        MarkSurplus = "mark_surplus",
        /// The run output that a mark names does not exist.
        RunOutputMissing = "run_output_missing",
        /// A run output cannot be read.
        RunOutputInvalid = "run_output_invalid",
        /// A run output contradicts its mark or its chunk.
        RunOutputDiffers = "run_output_differs",
        /// The counts of a tally are not those of its chunks.
        TallyDiffers = "tally_differs",
        /// The totals of an attempt are not the sums of its tallies.
        TotalsDiffer = "totals_differ",
        /// The tallies of an attempt do not hold the items that it dispatched.
        DispatchedDiffers = "dispatched_differs",
        /// The counts of the job are not those of its attempts.
        CountsDiffer = "counts_differ",
        /// The manifest of the results does not exist.
        ManifestMissing = "manifest_missing",
        /// The manifest cannot be read.
        ManifestInvalid = "manifest_invalid",
        /// The manifest has other counts than the job.
        ManifestDiffers = "manifest_differs",
        /// A file that the manifest lists does not exist.
        ResultFileMissing = "result_file_missing",
        /// A file has another length than the manifest says.
        ResultFileDiffers = "result_file_differs",
    }
}

/// The audit of a job, or of a part of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = AuditView)]
#[serde(rename_all = "camelCase")]
pub struct AuditProof {
    /// The job's name.
    pub job_guid: JobGuid,
    /// The attempt that the job is in, or ended with.
    #[schema(minimum = 1)]
    pub attempt: u32,
    /// The job's status.
    pub status: Status,
    /// What the audit came to.
    #[schema(value_type = AuditVerdict)]
    pub verdict: Open<AuditVerdict>,
    /// The first thing that does not hold; null if there is none.
    pub finding: Option<AuditFinding>,
    /// How many items the attempts read so far account for, each item once.
    pub item_count: u64,
    /// How many of them succeeded.
    pub items_succeeded: u64,
    /// How many of them failed.
    pub items_failed: u64,
    /// How many of them were skipped.
    pub items_skipped: u64,
    /// How many tallies were read, of all attempts together. So are the figures below.
    pub tallies: u64,
    /// How many chunks their chunk indexes list.
    pub chunks: u64,
    /// How many of the chunks have a mark: a run committed each of them.
    pub chunks_committed: u64,
    /// How many chunks were skipped without a mark, because the job was stopped.
    pub chunks_skipped: u64,
    /// How many chunks have no outcome yet. 0 for a job that has ended.
    pub chunks_open: u64,
    /// How many run outputs were read.
    pub run_outputs: u64,
    /// How many tallies of earlier attempts could not be recomputed, because objects of theirs have expired.
    pub tallies_expired: u64,
    /// When the job was read.
    pub at: Timestamp,
    /// Where the audit continues: send it as `after`. Null if there is no more to read.
    pub next: Option<String>,
    /// The hash chain over everything that was read: 64 hexadecimal digits. It stays the same as long as what is stored
    /// does, however many requests read it.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub evidence: String,
    /// The SHA-256 of this proof in its canonical form: 64 hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub digest: String,
}

/// A thing that does not hold, and where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditFinding {
    /// What does not hold, for a program.
    #[schema(value_type = AuditCode)]
    pub code: Open<AuditCode>,
    /// What does not hold, for a person.
    pub message: String,
    /// The attempt.
    #[schema(minimum = 1)]
    pub attempt: u32,
    /// The tally, if it is about one.
    #[serde(default)]
    #[schema(required)]
    pub tally: Option<u32>,
    /// The place of the chunk in its tally, if it is about one chunk.
    #[serde(default)]
    #[schema(required)]
    pub chunk: Option<u8>,
}

impl AuditProof {
    /// The canonical form of the proof: the text whose SHA-256 is `digest`.
    ///
    /// UTF-8, each line ended by one line feed. `at`, `next` and the text of the finding are not part of it.
    pub fn canonical(&self) -> String {
        let finding = self.finding.as_ref().map_or_else(
            || "-".to_owned(),
            |finding| {
                let AuditFinding { code, attempt, tally, chunk, .. } = finding;
                let tally = tally.map_or_else(|| "-".to_owned(), |tally| tally.to_string());
                let chunk = chunk.map_or_else(|| "-".to_owned(), |chunk| chunk.to_string());
                format!("{code} {attempt} {tally} {chunk}")
            },
        );
        let lines = [
            AUDIT_FORM.to_owned(),
            format!("job {}", self.job_guid),
            format!("attempt {}", self.attempt),
            format!("status {}", self.status.as_str()),
            format!("verdict {}", self.verdict),
            format!("finding {finding}"),
            format!("items {} {} {} {}", self.item_count, self.items_succeeded, self.items_failed, self.items_skipped),
            format!("chunks {} {} {} {}", self.chunks, self.chunks_committed, self.chunks_skipped, self.chunks_open),
            format!("read {} {} {}", self.tallies, self.run_outputs, self.tallies_expired),
            format!("evidence {}", self.evidence),
        ];
        lines.map(|line| line + "\n").concat()
    }

    /// This proof with its digest.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.digest = sha256_hex(self.canonical());
        self
    }

    /// Whether the digest is that of this proof: nobody has altered one of the two on the way.
    pub fn is_intact(&self) -> bool {
        self.digest == sha256_hex(self.canonical())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn proof() -> AuditProof {
        let counts = json!({"itemCount": 11231, "itemsSucceeded": 11230, "itemsFailed": 1, "itemsSkipped": 0});
        let read = json!({"tallies": 1, "chunks": 23, "chunksCommitted": 23, "chunksSkipped": 0, "chunksOpen": 0,
                          "runOutputs": 1, "talliesExpired": 0});
        let mut proof = json!({"jobGuid": "01a1f997-c087-7785-ba44-fdac1155c2bf", "attempt": 1, "status": "completed",
                               "verdict": "proved", "at": Timestamp::UNIX_EPOCH, "evidence": sha256_hex("x"), "digest": ""});
        for more in [counts, read] {
            proof.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        serde_json::from_value::<AuditProof>(proof).unwrap().sealed()
    }

    #[test]
    fn the_canonical_form_is_as_documented() {
        let proof = proof();
        assert!(proof.is_intact());
        let expected = format!(
            "rowmill-audit/1\njob {}\nattempt 1\nstatus completed\nverdict proved\nfinding -\nitems 11231 11230 1 0\n\
             chunks 23 23 0 0\nread 1 1 0\nevidence {}\n",
            proof.job_guid, proof.evidence
        );
        assert_eq!(proof.canonical(), expected);
    }

    #[test]
    fn an_altered_figure_breaks_the_digest() {
        let altered: [fn(&mut AuditProof); 6] = [
            |proof| proof.items_failed += 1,
            |proof| proof.verdict = AuditVerdict::ProvedInPart.into(),
            |proof| proof.chunks_open = 1,
            |proof| proof.tallies_expired = 1,
            |proof| proof.evidence = sha256_hex("other"),
            |proof| {
                let code = AuditCode::TallyOpen.into();
                proof.finding =
                    Some(AuditFinding { code, message: String::new(), attempt: 1, tally: None, chunk: None });
            },
        ];
        for alter in altered {
            let mut proof = proof();
            alter(&mut proof);
            assert!(!proof.is_intact(), "{}", proof.canonical());
        }
    }
}
