//! The external buckets that callers may read or have results stored in.

use rowmill_core::model::ids::Owner;

use crate::BucketSettings;

/// The external buckets.
#[derive(Clone, Debug)]
pub struct OtherBuckets {
    /// Those that callers may read.
    pub inputs: AllowedBuckets,
    /// Those that callers may have results stored in.
    pub outputs: AllowedBuckets,
}

/// Buckets, and what the keys in them begin with that each caller may use.
#[derive(Clone, Debug)]
pub struct AllowedBuckets {
    buckets: Vec<String>,
    prefix: String,
    said: &'static Said,
}

/// How messages speak of allowed buckets.
#[derive(Debug)]
struct Said {
    uses_none: &'static str,
    may_not_use: &'static str,
    prefix: &'static str,
}

static INPUTS: Said = Said {
    uses_none: "is not allowed: this stack reads no external buckets, see its parameter `InputBuckets`.",
    may_not_use: "is not a bucket that this stack may read, see its parameter `InputBuckets`.",
    prefix: "InputPrefix",
};

static OUTPUTS: Said = Said {
    uses_none: "is not allowed: this stack stores nothing in external buckets, see its parameter `OutputBuckets`.",
    may_not_use: "is not a bucket that this stack may write to, see its parameter `OutputBuckets`.",
    prefix: "OutputPrefix",
};

impl OtherBuckets {
    /// The buckets of these settings. The bucket of the stack is none of them: it holds the files of all callers.
    pub fn of(settings: BucketSettings, own_bucket: &str) -> Self {
        let BucketSettings { inputs, input_prefix, outputs, output_prefix } = settings;
        // `arn:aws:s3:::data`
        let named = |arns: &str| -> Vec<String> {
            let names = arns.split(',').filter_map(|arn| arn.rsplit(':').next());
            names.filter(|name| !name.is_empty() && *name != own_bucket).map(str::to_owned).collect()
        };
        Self {
            inputs: AllowedBuckets { buckets: named(&inputs), prefix: input_prefix, said: &INPUTS },
            outputs: AllowedBuckets { buckets: named(&outputs), prefix: output_prefix, said: &OUTPUTS },
        }
    }
}

impl AllowedBuckets {
    /// Checks that a bucket may be used.
    ///
    /// # Errors
    /// Why it may not: the rest of a sentence that begins with its name.
    pub fn check_bucket(&self, bucket: &str) -> Result<(), &'static str> {
        self.check_any()?;
        match self.buckets.iter().any(|allowed| allowed == bucket) {
            true => Ok(()),
            false => Err(self.said.may_not_use),
        }
    }

    /// Checks that any bucket may be used.
    ///
    /// # Errors
    /// As of [`check_bucket`](Self::check_bucket).
    pub const fn check_any(&self) -> Result<(), &'static str> {
        match self.buckets.is_empty() {
            true => Err(self.said.uses_none),
            false => Ok(()),
        }
    }

    /// Checks that this caller may use keys that begin like this.
    ///
    /// # Errors
    /// Why it may not: the rest of a sentence that begins with the key.
    pub fn check_key(&self, owner: &Owner, key: &str) -> Result<(), String> {
        match self.prefix_of(owner) {
            Some(allowed) if key.starts_with(&allowed) => Ok(()),
            Some(allowed) => {
                Err(format!("must begin with `{allowed}`, see the parameter `{}` of the stack.", self.said.prefix))
            }
            None => Err("cannot be allowed: the name of the caller has a `/`.".to_owned()),
        }
    }

    /// What the keys that this caller may use begin with. A caller whose name has a slash could reach into the keys of
    /// another one.
    fn prefix_of(&self, owner: &Owner) -> Option<String> {
        const OWNER: &str = "{owner}";
        if !self.prefix.contains(OWNER) {
            return Some(self.prefix.clone());
        }
        let end = if self.prefix.ends_with('/') { "" } else { "/" };
        (!owner.0.contains('/')).then(|| self.prefix.replace(OWNER, &owner.0) + end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(buckets: &str, prefix: &str) -> OtherBuckets {
        let (inputs, input_prefix) = (buckets.to_owned(), prefix.to_owned());
        let (outputs, output_prefix) = ("arn:aws:s3:::results".to_owned(), "all/".to_owned());
        OtherBuckets::of(BucketSettings { inputs, input_prefix, outputs, output_prefix }, "own")
    }

    #[test]
    fn the_buckets_of_the_settings_may_be_used_but_not_that_of_the_stack() {
        assert!(of("", "").inputs.check_bucket("data").unwrap_err().contains("no external buckets"));
        let all = of("arn:aws:s3:::data,arn:aws-cn:s3:::more,arn:aws:s3:::own", "");
        for (bucket, is_allowed) in [("data", true), ("more", true), ("own", false), ("mor", false), ("", false)] {
            assert_eq!(all.inputs.check_bucket(bucket).is_ok(), is_allowed, "{bucket}");
        }
        assert_eq!(all.inputs.check_key(&Owner("a/b".to_owned()), ""), Ok(()));
        assert!(all.outputs.check_bucket("data").unwrap_err().contains("`OutputBuckets`"), "it is only read");
        assert_eq!(all.outputs.check_bucket("results"), Ok(()));
        assert!(all.outputs.check_key(&Owner("a".to_owned()), "").unwrap_err().contains("`OutputPrefix`"));
    }

    #[test]
    fn a_caller_uses_what_its_prefix_allows() {
        for template in ["tenants/{owner}/", "tenants/{owner}"] {
            let own = of("arn:aws:s3:::data", template).inputs;
            let allowed = |owner: &str, key| own.check_key(&Owner(owner.to_owned()), key).is_ok();
            assert!(allowed("a", "tenants/a/2026/"));
            for key in ["", "tenants/", "tenants/a", "tenants/ab/", "tenants/b/"] {
                assert!(!allowed("a", key), "{key}");
            }
            assert!(!allowed("a/b", "tenants/a/b/"));
        }
    }
}
