//! `rowmill audit`: proves the counts of a job from what is stored.

use std::collections::BTreeMap;
use std::process::ExitCode;

use futures::{StreamExt, stream};
use rowmill_api::problem::ProblemCode;
use rowmill_core::model::audit::{AuditProof, AuditVerdict};
use rowmill_core::model::ids::JobGuid;

use super::connection::ApiArgs;
use super::operator::Operator;
use super::{CommandError, print, print_json, print_result};
use crate::api::{ApiClient, ApiError, Audit};
use crate::terminal::{count, cut, table};

/// The longest text of a finding that is shown.
const MESSAGE_WIDTH: usize = 500;

/// Jobs of `--all` that are audited at once.
const AT_ONCE: usize = 4;

/// Recomputes the counts of a job from what is stored, and proves each chunk accounted for exactly once
///
/// Exit codes: 0 if nothing is wrong, 1 if something does not hold. The first such thing is named.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// The job's guid
    #[arg(required_unless_present = "all")]
    pub job_guid: Option<JobGuid>,
    /// Audit all jobs of all owners, with your AWS credentials: invokes the functions of the stack. For its operators
    #[arg(long, conflicts_with_all = ["job_guid", "url"])]
    pub all: bool,
    #[command(flatten)]
    pub api: ApiArgs,
    /// Print each proof as a line of JSON
    #[arg(long)]
    pub json: bool,
}

pub async fn execute(args: AuditArgs) -> Result<ExitCode, CommandError> {
    let Some(job_guid) = args.job_guid else { return execute_all(args).await };
    let proof = whole_proof(&args.api.connect().await?.api, job_guid).await?;
    print_result(args.json, &proof, || shown(&proof))?;
    if !proof.is_intact() {
        eprintln!("error: the digest of the proof does not match its figures; they were altered on the way");
        return Ok(ExitCode::FAILURE);
    }
    Ok(if proof.finding.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn execute_all(args: AuditArgs) -> Result<ExitCode, CommandError> {
    let operator = Operator::of(&args.api.functions).await?;
    let proofs = operator.jobs().await?.into_iter().map(|(owner, job_guid)| {
        let api = operator.api(&owner);
        async move { whole_proof(&api, job_guid).await }
    });
    let mut proofs = stream::iter(proofs).buffer_unordered(AT_ONCE);
    let (mut verdicts, mut is_proved) = (BTreeMap::<String, u64>::new(), true);
    while let Some(proof) = proofs.next().await {
        let proof = match proof {
            // It has expired since it was listed.
            Err(error) if error.is(ProblemCode::NotFound) => continue,
            proof => proof?,
        };
        let is_sound = proof.finding.is_none() && proof.is_intact();
        if args.json {
            print_json(&proof)?;
        } else if !is_sound {
            print(&format!("{}\n{}\n", proof.job_guid, shown(&proof)))?;
        }
        is_proved &= is_sound;
        *verdicts.entry(cut(proof.verdict.as_str(), 40).replace('_', " ")).or_default() += 1;
    }
    let verdicts: Vec<String> =
        verdicts.into_iter().map(|(verdict, jobs)| format!("{} {verdict}", count(jobs))).collect();
    eprintln!("Audited jobs: {}", if verdicts.is_empty() { "none".to_owned() } else { verdicts.join(", ") });
    Ok(if is_proved { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The proof of all that is stored of a job, which may take several requests.
async fn whole_proof(api: &ApiClient, job_guid: JobGuid) -> Result<Audit, ApiError> {
    let mut proof = api.audit(job_guid, None).await?;
    while let (true, Some(next)) = (proof.verdict == AuditVerdict::Continues, proof.next.clone()) {
        proof = api.audit(job_guid, Some(&next)).await?;
    }
    Ok(proof)
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
