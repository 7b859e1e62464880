#![doc = include_str!("../guide/write-a-job-type.md")]
