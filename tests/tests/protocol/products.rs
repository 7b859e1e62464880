//! Products: files that workers store beside outputs.

use std::time::Duration;

use acceptance::files;
use acceptance::world::World;
use rowmill_api::task::{OutputOfItem, ProductRequest, TaskOrder};
use rowmill_core::model::product::{PRODUCT_MAX_BYTES, PRODUCTS_MAX, ProductId};
use rowmill_core::ports::{Clock, Jobs, Objects, PortError};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use work_task::error::TaskError;
use work_task::lend::Lent;

use crate::tasks::{TERMS, begun, lent, names, offered};

fn product(item: &str, name: &str) -> ProductRequest {
    let content_type = Some("image/png".to_owned());
    ProductRequest {
        token: String::new(),
        item_identifier: item.to_owned(),
        name: name.to_owned(),
        content_type,
        bytes: 3,
    }
}

fn output(item: &str, output: &Value, products: Vec<String>) -> OutputOfItem {
    OutputOfItem { item_identifier: item.to_owned(), output: to_raw_value(output).unwrap(), products }
}

/// A worker stores a product of the first item, as the presigned request lets it.
async fn stored(world: &World, lent: &Lent, name: &str) {
    let request = world.task_work.product(lent.id, lent.token, &product(&names(lent)[0], name)).await.unwrap();
    assert_eq!((request.method.as_str(), request.headers["if-none-match"].as_str()), ("PUT", "*"));
    assert_eq!(
        (request.headers["content-length"].as_str(), request.headers["content-type"].as_str()),
        ("3", "image/png")
    );
    let key = request.url.strip_prefix("memory:").unwrap();
    let id = ProductId::new(lent.items[0].row, lent.token, name).unwrap();
    assert_eq!(key, id.key(lent.id.job), "it names the job, the row and the lease");
    world.objects.put(key, "image/png", "abc".into(), None).await.unwrap();
}

/// Reports the first item with these products.
async fn reported(world: &World, lent: &Lent, products: &[&str]) -> Result<TaskOrder, TaskError> {
    let name = names(lent)[0].clone();
    let products = products.iter().map(|name| (*name).to_owned()).collect();
    let mut outputs = vec![output(&name, &json!({ "a": 1 }), products)];
    world.task_work.list_products(lent.id, lent.token, &mut outputs).await?;
    let answer = json!({ "batchItemFailures": [], "outputs": outputs }).to_string().into_bytes();
    world.task_work.report(lent.id, lent.token, Some(&[name]), &answer).await
}

#[tokio::test]
async fn the_results_list_the_products_of_the_lease_that_counted_and_no_others() {
    let (world, job) = offered(files::plain_csv(1), json!({})).await;
    let lost = begun(&world).await;
    stored(&world, &lost, "frame.png").await;
    stored(&world, &lost, "lost.png").await;
    world.clock.advance(TERMS.patience() + Duration::from_secs(6));
    let holder = begun(&world).await;
    assert!(matches!(reported(&world, &lost, &["frame.png"]).await, Err(TaskError::Gone(_))));
    let missing = reported(&world, &holder, &["frame.png"]).await.unwrap_err();
    assert!(missing.to_string().contains("names a product that is not stored: `frame.png`"), "{missing}");
    stored(&world, &holder, "frame.png").await;
    assert_eq!(reported(&world, &holder, &["frame.png"]).await.unwrap(), TaskOrder::Finished);
    assert_eq!(world.run_and_show(job).await.items_succeeded, 1);

    let row = world.jobs.job(job).await.unwrap();
    let outputs = String::from_utf8(world.result_file(&row, "outputs.jsonl").await).unwrap();
    let output: Value = serde_json::from_str(&outputs).unwrap();
    let id = ProductId::new(1, holder.token, "frame.png").unwrap();
    let etag = world.objects.head(&id.key(job)).await.unwrap().etag;
    let path = format!("/api/jobs/{job}/products/{id}");
    let listed = json!([{ "name": "frame.png", "contentType": "image/png", "bytes": 3, "etag": etag, "path": path }]);
    assert_eq!(output, json!({ "a": 1, "products": listed }), "nothing of the lease that was lost");
    let link = world.results.product(&row, &id).await.unwrap();
    assert_eq!((link.method.as_str(), link.url), ("GET", format!("memory:{}?as=frame.png", id.key(job))));
    assert_eq!(link.expires_at, world.clock.now() + world.limits.links.expiry);
    let other = ProductId::new(1, holder.token, "lost.png").unwrap();
    assert!(matches!(world.results.product(&row, &other).await, Err(PortError::NotFound)));
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn what_is_no_product_of_an_item_at_work_is_refused() {
    let (world, _) = offered(files::plain_csv(8), json!({})).await;
    let unconfirmed = lent(&world).await;
    let first = names(&unconfirmed)[0].clone();
    let refused = async |lent: &Lent, wanted: &ProductRequest| {
        world.task_work.product(lent.id, lent.token, wanted).await.unwrap_err()
    };
    assert!(matches!(refused(&unconfirmed, &product(&first, "a")).await, TaskError::NotBegun(_)));
    world.task_work.beat(unconfirmed.id, unconfirmed.token).await.unwrap();
    let (holder, other) = (unconfirmed, begun(&world).await);
    let large = ProductRequest { bytes: PRODUCT_MAX_BYTES + 1, ..product(&first, "a") };
    let untyped = ProductRequest { content_type: Some("a\nb".to_owned()), ..product(&first, "a") };
    for (wanted, wrong) in [
        (product(&first, "../a"), "name"),
        (product(&names(&other)[0], "a"), "itemIdentifier"),
        (product("x/1", "a"), "itemIdentifier"),
        (large, "bytes"),
        (untyped, "contentType"),
    ] {
        let error = refused(&holder, &wanted).await;
        assert!(matches!(error, TaskError::BadProduct { field, .. } if field == wrong), "{wrong}: {error}");
    }
    let foreign = world.task_work.product(holder.id, other.token, &product(&first, "a")).await;
    assert!(matches!(foreign, Err(TaskError::Gone(_))), "the token of another lease");
    let many = vec!["a"; PRODUCTS_MAX + 1];
    assert!(matches!(reported(&world, &holder, &many).await, Err(TaskError::BadProduct { .. })));
    assert!(matches!(reported(&world, &holder, &["../a"]).await, Err(TaskError::BadProduct { .. })));
    let own = json!({ "products": [] });
    let mut outputs = vec![output(&first, &own, vec!["a".to_owned()])];
    stored(&world, &holder, "a").await;
    let listed = world.task_work.list_products(holder.id, holder.token, &mut outputs).await;
    assert!(matches!(listed, Err(TaskError::BadProduct { .. })), "the field is taken");
    assert_eq!(reported(&world, &holder, &["a"]).await.unwrap(), TaskOrder::Continue);
    assert!(matches!(refused(&holder, &product(&first, "b")).await, TaskError::BadProduct { .. }), "it is reported");
}
