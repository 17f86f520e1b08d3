"""The files of a project: `config.yaml`, model files, `external_models.yaml`; every error has its line."""
