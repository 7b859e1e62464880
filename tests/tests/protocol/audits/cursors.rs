//! An audit over several pages, and cursors that nobody gave out.

use std::time::Duration;

use acceptance::world::World;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rowmill_core::items::audit::{AuditError, AuditLimits};
use rowmill_core::model::audit::{AuditProof, AuditVerdict};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::Jobs;
use serde_json::{Value, json};

use super::{created, ended, redriven};
use crate::chunks_of;

/// A world whose pages hold one tally.
fn world_of_small_pages() -> World {
    let mut world = World::new(chunks_of(1));
    world.auditor.limits = AuditLimits { objects: 1, ..world.auditor.limits };
    world
}

async fn page(world: &World, job: JobGuid, after: Option<&str>) -> Result<AuditProof, AuditError> {
    world.auditor.page(&world.jobs.job(job).await.unwrap(), after).await
}

fn changed(cursor: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).unwrap()).unwrap();
    change(&mut value);
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&value).unwrap())
}

#[tokio::test]
async fn an_audit_in_many_pages_comes_to_the_same_proof() {
    let ways: [fn(&mut AuditLimits); 3] =
        [|limits| limits.objects = 1, |limits| limits.bytes = 1, |limits| limits.time = Duration::ZERO];
    for shorten in ways {
        let mut world = World::new(chunks_of(1));
        let job = redriven(&world).await;
        let whole = world.audit(job).await;
        assert_eq!(whole.verdict, AuditVerdict::Proved);
        shorten(&mut world.auditor.limits);
        let (mut pages, mut after) = (0, None);
        let last = loop {
            pages += 1;
            let view = page(&world, job, after.as_deref()).await.unwrap();
            assert!(view.is_intact());
            if view.verdict != AuditVerdict::Continues {
                break view;
            }
            after = Some(view.next.unwrap());
            assert!(pages < 10);
        };
        assert_eq!(last, whole);
        assert!(pages >= 3, "{pages}: two tallies, and one of the redrive");
    }
}

#[tokio::test]
async fn an_audit_does_not_go_on_once_the_job_has_ended_or_was_redriven() {
    let world = world_of_small_pages();
    let job = created(&world).await;
    world.split().await;
    let running = page(&world, job, None).await.unwrap().next.unwrap();
    assert!(page(&world, job, Some(&running)).await.is_ok());
    world.process_queued().await;
    world.run().await;
    assert!(matches!(page(&world, job, Some(&running)).await, Err(AuditError::Moved)));
    let first = page(&world, job, None).await.unwrap().next.unwrap();
    world.redrive(job, None).await.unwrap();
    assert!(matches!(page(&world, job, Some(&first)).await, Err(AuditError::Moved)));
    world.run().await;
    assert!(matches!(page(&world, job, Some(&first)).await, Err(AuditError::Moved)));
}

#[tokio::test]
async fn a_cursor_that_nobody_gave_out_is_refused() {
    let world = world_of_small_pages();
    let (job, other) = (ended(&world).await, ended(&world).await);
    let cursor = page(&world, job, None).await.unwrap().next.unwrap();
    assert!(cursor.len() <= 1024, "{}", cursor.len());
    assert!(page(&world, job, Some(&cursor)).await.is_ok());
    let forged: [fn(&mut Value); 9] = [
        |state| state["attempt"] = json!(0),
        |state| state["attempt"] = json!(2),
        |state| state["items"] = json!(u64::MAX),
        |state| state["counts"]["failed"] = json!(u64::MAX),
        |state| state["border"]["row"] = json!(u64::MAX),
        |state| state["read"]["chunks"] = json!(u64::MAX),
        |state| state["evidence"] = json!("x"),
        |state| state["more"] = json!(1),
        |state| state["tally"] = json!(-1),
    ];
    let forged = forged.map(|change| changed(&cursor, change));
    let long = "A".repeat(1 << 20);
    for wrong in forged.iter().map(String::as_str).chain(["", "{}", "AAAA", "é", &long]) {
        let refused = page(&world, job, Some(wrong)).await;
        assert!(matches!(refused, Err(AuditError::Cursor)), "{}", &wrong[..wrong.len().min(99)]);
    }
    assert!(matches!(page(&world, other, Some(&cursor)).await, Err(AuditError::Cursor)));
    // Forged sums deceive only who forged them, and do no harm.
    let most = changed(&cursor, |state| {
        state["items"] = json!(1_u64 << 53);
        state["tally"] = json!(u32::MAX);
    });
    assert_eq!(page(&world, job, Some(&most)).await.unwrap().verdict, AuditVerdict::Refuted);
}
