# One image for all parts of the service: web (the default), worker, beat, and the commands of manage.py.
#
#   docker build -t servicebase .
#   docker run … servicebase                       web
#   docker run … servicebase up --only worker      or beat
#   docker run … servicebase prepare               migrate the database, then exit
#
# compose.yaml runs all of them; see docs/how-to/deploy.md.

FROM python:3.13-slim AS packages
COPY requirements.txt .
# Installs only wheels with the locked hashes; nothing is built. pip compiles the modules, so that containers start faster.
# The lock file contains all dependencies that are needed, so pip looks for no others.
RUN python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv install --no-cache-dir --no-deps --require-hashes --only-binary :all: --requirement requirements.txt
# Converts the embedding models and removes the rest of their packages, which the image could not do later.
COPY collections_app/__init__.py collections_app/
COPY collections_app/model_files collections_app/model_files
RUN /opt/venv/bin/python -m collections_app.model_files

FROM python:3.13-slim
# The packages include the embedded PostgreSQL and Valkey. Backup and restore use their tools; in production the servers
# do not start.
COPY --from=packages /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SVC_ENV=production \
    SVC_HOST=0.0.0.0 \
    SVC_DATA_DIR=/data
WORKDIR /app
COPY manage.py ./
COPY templates templates
COPY collections_app collections_app
COPY workspace workspace
COPY agents agents
COPY tableapi tableapi
COPY sso sso
COPY accounts accounts
COPY system system
COPY config config
# The code is owned by root and read-only. /data holds only locks and sockets; any user can write there.
RUN python -m compileall -q . \
    && mkdir --mode=1777 /data \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin servicebase
USER 10001:10001
EXPOSE 8000
# For the web part only: the other parts do not serve HTTP, and compose.yaml disables the check for them.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import sys; from config import env; from config.runtime import up; sys.exit(not up.is_responding(env.current()))"]
# No shell in between: SIGTERM reaches the supervisor, which lets running requests finish.
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "manage.py"]
CMD ["up", "--only", "web"]
