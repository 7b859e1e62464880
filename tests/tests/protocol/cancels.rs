//! Calls that are dropped when their job stops, because their target takes a cancel.

use std::future::pending;
use std::sync::{Arc, Mutex, Weak};

use acceptance::files;
use acceptance::world::World;
use async_trait::async_trait;
use rowmill_core::job_types::TargetType;
use rowmill_core::job_types::target_type::TargetCalls;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Clock, Target, TargetError, TargetRequest};
use serde_json::{Value, json};

use crate::chunks_of;

/// A target that never answers. The job of its first call is cancelled meanwhile.
#[derive(Default)]
struct Silent {
    hears_cancels: bool,
    world: Mutex<Weak<World>>,
    calls: Mutex<Vec<Value>>,
}

#[async_trait]
impl Target for Silent {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        self.calls.lock().unwrap().push(serde_json::to_value(request).unwrap());
        if request.cancel.is_none() {
            let world = self.world.lock().unwrap().upgrade().unwrap();
            world.cancel(request.job_guid).await;
        } else if self.hears_cancels {
            return Ok(Vec::new());
        }
        pending().await
    }
}

#[tokio::test]
async fn a_call_is_dropped_when_its_job_is_cancelled_and_its_target_is_told() {
    let cases = [(true, DeliveryMode::Fresh, 3), (false, DeliveryMode::Fresh, 3), (true, DeliveryMode::Isolated, 1)];
    for (hears_cancels, delivery_mode, called) in cases {
        let target = Arc::new(Silent { hears_cancels, ..Silent::default() });
        let calls = TargetCalls { batch_items: 4, concurrency: 1, outputs: false, cancel: true };
        let geocode = TargetType::new("geocode", calls, Some(target.clone()));
        let world = World::with_job_type(chunks_of(500), |_| Some(Arc::new(geocode) as Arc<dyn JobType>));
        let world = Arc::new(world);
        *target.world.lock().unwrap() = Arc::downgrade(&world);
        let file = world.store_csv(files::plain_csv(3)).await;
        let job = world.create("geocode", file, json!({})).await.unwrap().job_guid;
        world.split().await;
        let message = ChunkMessage { delivery_mode, ..world.chunks.take().remove(0) };
        let began = world.clock.now();
        world.process(&message, false).await;
        let waited = world.clock.now().duration_since(began).as_secs();
        assert!(waited < 10, "{waited} s of a run that may take minutes");
        let shown = world.run_and_show(job).await;
        assert_eq!((shown.status, shown.items_succeeded, shown.items_skipped), (Status::Cancelled, 0, 3));
        let items: Vec<String> = (1..=called).map(|row| format!("{job}/{row}")).collect();
        let calls = target.calls.lock().unwrap().clone();
        let [call, cancel] = &calls[..] else { panic!("{calls:?}") };
        assert_eq!(call["items"].as_array().unwrap().len(), called);
        assert_eq!(cancel["cancel"], json!({ "attempt": 1, "itemIdentifiers": items }));
        assert_eq!(cancel["items"], json!([]));
    }
}
