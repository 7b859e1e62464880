//! The settings of the page.

rowmill_settings::settings! {
    /// Sign-in of the page.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct PageSettings {
        /// The public client that the issuer knows the page as. Empty: nobody can sign in on the page.
        pub client_id: String = String::new(), "PageClientId" in 0..=256;
        /// The web origin of the issuer's token endpoint, if it is not that of the issuer itself.
        pub token_origin: String = String::new(), "PageTokenOrigin" in 0..=256;
        /// The audience of accepted tokens.
        pub audience: String = String::new(), "JwtAudience";
    }
}
