//! `rowmill audit`: proves the counts of a job from what is stored.

use std::process::ExitCode;

use rowmill_core::model::audit::{AuditProof, AuditVerdict};

use super::connection::JobRefArgs;
use super::{CommandError, print_result};
use crate::terminal::{count, cut, table};

/// The longest text of a finding that is shown.
const MESSAGE_WIDTH: usize = 500;

/// Recomputes the counts of a job from what is stored, and proves each chunk accounted for exactly once
///
/// Exit codes: 0 if nothing is wrong, 1 if something does not hold. The first such thing is named.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    #[command(flatten)]
    pub job: JobRefArgs,
    /// Print the proof as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: AuditArgs) -> Result<ExitCode, CommandError> {
    let connection = args.job.api.connect().await?;
    let mut proof = connection.api.audit(args.job.job_guid, None).await?;
    while let (true, Some(next)) = (proof.verdict == AuditVerdict::Continues, proof.next.clone()) {
        proof = connection.api.audit(args.job.job_guid, Some(&next)).await?;
    }
    print_result(args.json, &proof, || shown(&proof))?;
    if !proof.is_intact() {
        eprintln!("error: the digest of the proof does not match its figures; they were altered on the way");
        return Ok(ExitCode::FAILURE);
    }
    Ok(if proof.finding.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(proof: &AuditProof) -> String {
    let line = |name: &str, figures: String| vec![name.to_owned(), figures];
    let mut rows = vec![
        line("items", count(proof.item_count)),
        line("  succeeded", count(proof.items_succeeded)),
        line("  failed", count(proof.items_failed)),
        line("  skipped", count(proof.items_skipped)),
        line("chunks", count(proof.chunks)),
        line("  committed", count(proof.chunks_committed)),
        line("  skipped", count(proof.chunks_skipped)),
        line("  open", count(proof.chunks_open)),
        line("tallies", count(proof.tallies)),
        line("run outputs", count(proof.run_outputs)),
    ];
    if proof.tallies_expired > 0 {
        rows.push(line("expired tallies", count(proof.tallies_expired)));
    }
    let verdict = cut(proof.verdict.as_str(), 40).replace('_', " ");
    let finding = proof.finding.as_ref().map_or_else(String::new, |finding| {
        format!("{}: {}\n", cut(finding.code.as_str(), 40), cut(&finding.message, MESSAGE_WIDTH))
    });
    let (evidence, digest) = (cut(&proof.evidence, 64), cut(&proof.digest, 64));
    let figures = table(&rows, &[1]);
    format!(
        "Audit of attempt {}: {verdict}\n{finding}\n{figures}\nevidence  {evidence}\ndigest    {digest}\n",
        proof.attempt
    )
}

#[cfg(test)]
mod tests {
    use rowmill_api::openapi::examples;
    use rowmill_core::model::audit::{AuditCode, AuditFinding};

    use super::*;

    #[test]
    fn a_proof_shows_the_verdict_the_figures_and_what_was_found() {
        let text = shown(&examples::audit());
        assert!(text.starts_with("Audit of attempt 1: proved\n\nitems        11,231\n  succeeded  11,230\n"), "{text}");
        assert!(text.contains("run outputs       1\n\nevidence  ") && text.contains("digest    "), "{text}");
        let finding = AuditFinding {
            code: AuditCode::TallyDiffers.into(),
            message: "Tally 3 \u{1b}[2J differs.".to_owned(),
            attempt: 1,
            tally: Some(3),
            chunk: None,
        };
        let verdict = AuditVerdict::Refuted.into();
        let text = shown(&AuditProof { verdict, finding: Some(finding), tallies_expired: 1200, ..examples::audit() });
        assert!(
            text.starts_with("Audit of attempt 1: refuted\ntally_differs: Tally 3 \\u{1b}[2J differs.\n\n"),
            "{text}"
        );
        assert!(text.contains("expired tallies   1,200\n"), "{text}");
    }
}
