//! Tables and bucket.

use serde_json::{Value, json};

use crate::{DAY_SECONDS, allowed, mapped, maximum_of, properties, target, template};

#[test]
fn objects_are_kept_for_their_retention_plus_the_longest_deadline_plus_a_day() {
    let template = template();
    let rules = properties(&template, "Bucket")["LifecycleConfiguration"]["Rules"].as_array().unwrap();
    let rule = |id: &str| rules.iter().find(|rule| rule["Id"] == id).unwrap_or_else(|| panic!("no rule {id}"));
    let promises = [
        ("uploads", "UploadRetentionDays"),
        ("inbox", "UploadRetentionDays"),
        ("results", "JobRetentionDays"),
        ("inbox-problems", "JobRetentionDays"),
    ];
    for (id, promise) in promises {
        let expiry = &rule(id)["ExpirationInDays"];
        assert_eq!(rule(id)["Prefix"], json!(format!("{id}/")));
        assert_eq!(target(&expiry["Fn::FindInMap"][1]), promise);
        for days in allowed(&template, promise) {
            let needed = days + maximum_of(&template, "MaximumDeadlineSeconds") / DAY_SECONDS + 1;
            assert!(mapped(&template, expiry, days) >= needed, "{id} promised for {days} days");
        }
    }
    let abort = |id: &str| &rule(id)["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"];
    assert_eq!(abort("uploads"), &rule("uploads")["ExpirationInDays"], "parts are kept as long as the upload");
    assert_eq!([abort("inbox"), abort("results")], [1, 1]);
    assert!(rules.iter().all(|rule| rule["Prefix"].is_string()), "the shortest of several rules would hold");
}

#[test]
fn the_bucket_is_private_encrypted_and_refuses_plain_http() {
    let template = template();
    let bucket = properties(&template, "Bucket");
    let public = bucket["PublicAccessBlockConfiguration"].as_object().unwrap();
    assert!(public.len() == 4 && public.values().all(|block| block == true), "{public:?}");
    let [with_key, without] = [1, 2].map(|branch| {
        let encryption = &bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]["Fn::If"];
        assert_eq!(encryption[0], "HasKmsKey");
        &encryption[branch]["ServerSideEncryptionByDefault"]
    });
    assert_eq!(*with_key, json!({ "SSEAlgorithm": "aws:kms", "KMSMasterKeyID": { "Ref": "KmsKeyArn" } }));
    assert_eq!(*without, json!({ "SSEAlgorithm": "AES256" }));
    assert_eq!(bucket["VersioningConfiguration"], Value::Null, "lifecycle rules must free the space");

    let policy = properties(&template, "BucketPolicy");
    assert_eq!(target(&policy["Bucket"]), "Bucket");
    let statement = &policy["PolicyDocument"]["Statement"][0];
    assert_eq!((&statement["Effect"], &statement["Principal"]), (&json!("Deny"), &json!("*")));
    assert_eq!(statement["Condition"], json!({ "Bool": { "aws:SecureTransport": "false" } }));
    let own = [json!({ "Fn::GetAtt": ["Bucket", "Arn"] }), json!({ "Fn::Sub": "${Bucket.Arn}/*" })];
    let attached =
        ["", "/*"].map(|part| json!({ "Fn::Sub": format!("arn:${{AWS::Partition}}:s3:::${{AttachedBucket}}{part}") }));
    let either = |(own, attached)| json!({ "Fn::If": ["MakesBucket", own, attached] });
    assert_eq!(statement["Resource"], own.into_iter().zip(attached).map(either).collect::<Value>());
}

/// A reference to what the stack does not make has no value.
#[test]
fn a_stack_with_attached_tables_and_bucket_makes_none_and_refers_to_none() {
    let template = template();
    for (id, makes) in [
        ("JobsTable", "MakesTables"),
        ("UploadsTable", "MakesTables"),
        ("AdmissionTable", "MakesTables"),
        ("RecordsTable", "MakesTables"),
        ("Bucket", "MakesBucket"),
    ] {
        assert_eq!(template.document()["Resources"][id]["Condition"], makes);
        let mut references = 0;
        for part in ["Resources", "Outputs"] {
            references += conditional_references(&template.document()[part], id, makes);
        }
        assert!(references > 3, "{references} references to {id}");
    }
}

#[test]
fn a_table_is_attached_exactly_if_the_stack_makes_none_then() {
    let template = template();
    let text = template.document().to_string();
    for (id, _) in template.resources_of("AWS::DynamoDB::Table") {
        let attached = format!("${{AttachedTables}}-{}", id.trim_end_matches("Table").to_lowercase());
        let has_condition = template.document()["Resources"][id]["Condition"] == "MakesTables";
        assert_eq!(text.contains(&attached), has_condition, "{id}");
    }
}

/// Number of references to a resource, all of which must be in the first branch of this condition.
fn conditional_references(part: &Value, id: &str, makes: &str) -> usize {
    let all = |parts: &mut dyn Iterator<Item = &Value>| parts.map(|part| conditional_references(part, id, makes)).sum();
    match part {
        Value::Object(fields) if fields.get("Fn::If").is_some_and(|branches| branches[0] == makes) => {
            assert_eq!(conditional_references(&fields["Fn::If"][2], id, makes), 0);
            1
        }
        Value::Object(fields) => {
            let text = fields.get("Fn::Sub").map(|sub| sub.as_str().unwrap_or_default()).unwrap_or_default();
            let refers = fields.get("Ref").is_some_and(|name| name == id)
                || fields.get("Fn::GetAtt").is_some_and(|path| path[0] == id)
                || [format!("${{{id}}}"), format!("${{{id}.")].iter().any(|name| text.contains(name));
            assert!(!refers, "{part} is not behind {makes}");
            all(&mut fields.values())
        }
        Value::Array(parts) => all(&mut parts.iter()),
        _ => 0,
    }
}
