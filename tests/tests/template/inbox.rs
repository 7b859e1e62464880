//! The resources of the inbox.

use serde_json::{Value, json};

use crate::{DAY_SECONDS, default_of, number, properties, target, template};

/// Longest wait of receive-file between two tries, and the growth of each wait.
const LONGEST_DELAY_SECONDS: u64 = 900;
const FIRST_DELAY_SECONDS: u64 = 10;

#[test]
fn the_bucket_notifies_the_inbox_queue_of_drops_only() {
    let template = template();
    let notifications = &properties(&template, "Bucket")["NotificationConfiguration"];
    let queues = notifications["QueueConfigurations"].as_array().unwrap();
    let [inbox] = queues.as_slice() else { panic!("{queues:?}") };
    assert_eq!((target(&inbox["Queue"]), &inbox["Event"]), ("InboxQueue", &json!("s3:ObjectCreated:*")));
    // Problem reports have another prefix; otherwise each would be received as a file.
    assert_eq!(inbox["Filter"]["S3Key"]["Rules"], json!([{ "Name": "prefix", "Value": "inbox/" }]));
    assert_eq!(notifications.as_object().unwrap().len(), 1);
}

#[test]
fn the_permission_to_send_to_the_queue_exists_before_the_bucket() {
    let template = template();
    assert_eq!(template.document()["Resources"]["Bucket"]["DependsOn"], "InboxQueuePolicy");
    let policy = properties(&template, "InboxQueuePolicy");
    assert_eq!(policy["Queues"], json!([{ "Ref": "InboxQueue" }]));
    let statements = policy["PolicyDocument"]["Statement"].as_array().unwrap();
    let [statement, _] = statements.as_slice() else { panic!("{statements:?}") };
    assert_eq!(statement["Principal"], json!({ "Service": "s3.amazonaws.com" }));
    assert_eq!(statement["Action"], "sqs:SendMessage");
    let account = json!({ "aws:SourceAccount": { "Ref": "AWS::AccountId" } });
    // CloudFormation names the bucket by its logical id in lower case.
    let [own, attached] = ["*-bucket-*", "${AttachedBucket}"]
        .map(|name| json!({ "Fn::Sub": format!("arn:${{AWS::Partition}}:s3:::{name}") }));
    let bucket = json!({ "aws:SourceArn": { "Fn::If": ["MakesBucket", own, attached] } });
    assert_eq!(statement["Condition"], json!({ "StringEquals": account, "ArnLike": bucket }));
    assert_eq!(properties(&template, "Bucket")["BucketName"], Value::Null);
    assert!(!policy.to_string().contains("\"Bucket\""), "the bucket depends on it");
}

#[test]
fn a_dropped_file_waits_for_a_slot_until_it_expires() {
    let template = template();
    let deliveries = &properties(&template, "InboxQueue")["RedrivePolicy"]["maxReceiveCount"];
    let deliveries = number(&template, deliveries);
    let waits: u64 = (1..=deliveries).map(|count| (count * FIRST_DELAY_SECONDS).min(LONGEST_DELAY_SECONDS)).sum();
    assert!(waits > default_of(&template, "UploadRetentionDays") * DAY_SECONDS, "{waits} s");
}
