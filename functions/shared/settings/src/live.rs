//! Settings of live connections and subscriptions.

crate::settings! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ConnectionLimits {
        pub per_owner: usize = 500, "OwnerLiveConnections" in 1..=10_000;
    }
}
