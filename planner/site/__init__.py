"""The catalog as a site: pages that load nothing from elsewhere and can be read without JavaScript."""
