# The bot as a service. State, mirrors and catalogs are in the volume /data; Java comes with the Python packages.
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 mergeplan \
    && install --directory --owner mergeplan --group mergeplan /data

WORKDIR /build
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY planner planner
COPY bot bot
COPY mergeplan mergeplan
RUN pip install --no-cache-dir --constraint requirements.lock ".[tracing]" && rm -rf /build/*

USER mergeplan
WORKDIR /data
ENV MERGEPLAN_HOME=/data \
    MERGEPLAN_HOST=0.0.0.0 \
    MERGEPLAN_PORT=8000 \
    PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['MERGEPLAN_PORT'] + '/healthz', timeout=4)"]
ENTRYPOINT ["mergeplan"]
CMD ["serve"]
