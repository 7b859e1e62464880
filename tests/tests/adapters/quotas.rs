//! The rows of the admission table that bound what a caller may ask for.

use std::ops::Deref;

use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_aws::adapters::dynamodb::{DynamoDbBreakers, DynamoDbQuotas};
use rowmill_core::model::blocks::{AT, Principal, REASON, scope};
use rowmill_core::model::breaker::{Breaker, BreakerState};
use rowmill_core::model::ids::{FileGuid, Owner, RunId};
use rowmill_core::model::outstanding::{OutstandingLimits, OutstandingUpload};
use rowmill_core::model::request_limits::{RequestLimits, RequestsCounted};
use rowmill_core::ports::{
    Block, BreakerMoved, Breakers, Counted, OutstandingError, OutstandingUploads, RequestCounts, RequestToCount,
};
use rowmill_testing::contract::{self, Operator};
use uuid::Uuid;

use crate::dynamodb_server::Server;
use crate::lost_replies::{at, lossy};

/// The quotas with direct access to their table, to write what `rowmill block` writes.
struct Operated<'a> {
    server: &'a Server,
    quotas: DynamoDbQuotas,
    table: String,
}

impl Deref for Operated<'_> {
    type Target = DynamoDbQuotas;

    fn deref(&self) -> &DynamoDbQuotas {
        &self.quotas
    }
}

impl Operator for Operated<'_> {
    async fn set_block(&self, principal: &Principal, block: Option<Block>) {
        let key = AttributeValue::S(scope(principal));
        let Some(block) = block else {
            let request = self.server.client.delete_item().table_name(&self.table).key("scope", key);
            request.send().await.unwrap();
            return;
        };
        let at = AttributeValue::N(block.at.as_millisecond().to_string());
        let mut request = self.server.client.put_item().table_name(&self.table).item("scope", key).item(AT, at);
        if let Some(reason) = block.reason {
            request = request.item(REASON, AttributeValue::S(reason));
        }
        request.send().await.unwrap();
    }
}

#[tokio::test]
async fn the_breakers_keep_the_contract() {
    let server = Server::start().await;
    contract::breakers(async || DynamoDbBreakers::new(server.client.clone(), server.admission_table().await)).await;
}

#[tokio::test]
async fn a_breaker_moves_one_revision_at_a_time_if_every_reply_is_lost_once() {
    let server = Server::start().await;
    let breakers = DynamoDbBreakers::new(lossy(&server).await, server.admission_table().await);
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let state = BreakerState::Open { until: at };
    let mut breaker = Breaker { rev: 1, at, state, openings: 1, code: "busy".into(), failed_probe: None };
    for rev in 1..=3 {
        breaker.rev = rev;
        assert_eq!(breakers.move_breaker("mail", &breaker).await.unwrap(), BreakerMoved::Won);
    }
    assert_eq!(breakers.breaker("mail").await.unwrap(), Some(breaker));
}

#[tokio::test]
async fn the_quotas_keep_their_contracts() {
    let server = Server::start().await;
    contract::request_counts(async || server.quotas().await).await;
    contract::outstanding_uploads(async || server.quotas().await).await;
    contract::blocks(async || {
        let table = server.admission_table().await;
        let quotas = DynamoDbQuotas::new(server.client.clone(), table.clone());
        Operated { server: &server, quotas, table }
    })
    .await;
}

#[tokio::test]
async fn a_request_counts_once_if_the_reply_is_lost() {
    let server = Server::start().await;
    let quotas = DynamoDbQuotas::new(lossy(&server).await, server.admission_table().await);
    let limits = RequestLimits { per_minute: 3, per_hour: 100 };
    let request = |number: u8| RequestToCount {
        principal: Principal::Owner(Owner("me".into())),
        operation: "createJob".into(),
        id: RunId::from_bytes([number; 7]),
        at: at(0),
    };
    for number in 1..=3 {
        let counted = RequestsCounted { minute: u32::from(number), hour: u32::from(number) };
        assert_eq!(quotas.count(&request(number), limits).await.unwrap(), Counted::Yes(counted));
    }
    assert!(matches!(quotas.count(&request(4), limits).await.unwrap(), Counted::No(_)));
}

#[tokio::test]
async fn an_upload_is_outstanding_once_if_every_reply_is_lost_once() {
    let server = Server::start().await;
    let quotas = DynamoDbQuotas::new(lossy(&server).await, server.admission_table().await);
    let limits = OutstandingLimits { uploads: 2, bytes: 20 };
    let upload = |number| OutstandingUpload { file_guid: FileGuid(Uuid::from_u128(number)), bytes: 10, until: at(100) };
    let me = Owner("me".into());
    for number in [1, 2] {
        quotas.add(&me, &upload(number), limits, at(0)).await.unwrap();
    }
    quotas.remove(&me, upload(1).file_guid).await.unwrap();
    quotas.add(&me, &upload(3), limits, at(0)).await.unwrap();
    let refused = quotas.add(&me, &upload(4), limits, at(0)).await;
    assert!(matches!(refused, Err(OutstandingError::Full(_))), "{refused:?}");
    // Dropping those that no longer count is repeated, too.
    for number in [5, 6] {
        quotas.add(&me, &OutstandingUpload { until: at(200), ..upload(number) }, limits, at(100)).await.unwrap();
    }
    let refused = quotas.add(&me, &upload(7), limits, at(100)).await;
    assert!(matches!(refused, Err(OutstandingError::Full(_))), "{refused:?}");
}
