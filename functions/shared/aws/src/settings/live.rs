//! How many live connections and subscriptions there may be.

crate::settings! {
    /// The limits of live connections.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ConnectionLimits {
        /// How many an owner may have.
        pub per_owner: usize = 500, "OwnerLiveConnections";
    }
}

crate::settings! {
    /// The limits of subscriptions.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct SubscriptionLimits {
        /// How many a connection may have.
        pub per_connection: usize = 50, "ConnectionSubscriptions";
    }
}
