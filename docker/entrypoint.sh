#!/usr/bin/env bash
# One image, several roles: entrypoint.sh ROLE ARGUMENTS...
#   master [OPTIONS]           a master of Spark's standalone cluster
#   worker [MASTER] [OPTIONS]  a worker of it; MASTER is SPARK_MASTER unless given
#   submit COMMAND ...         winnow COMMAND ... as an application of the cluster SPARK_MASTER
#   conf [OPTIONS]             what winnow spark-conf OPTIONS prints becomes Spark's configuration
#   anything else              winnow ...
# A worker offers WINNOW_GPUS GPUs, which Spark finds by the script that winnow brings.
# Spark's own variables set the rest: SPARK_MASTER_PORT, SPARK_WORKER_CORES, SPARK_WORKER_MEMORY,
# SPARK_WORKER_OPTS, ...; SPARK_CONF_DIR is the folder of spark-defaults.conf.
set -euo pipefail

master_port=${SPARK_MASTER_PORT:-7077}
export SPARK_MASTER_WEBUI_PORT=${SPARK_MASTER_WEBUI_PORT:-8080}
export SPARK_WORKER_WEBUI_PORT=${SPARK_WORKER_WEBUI_PORT:-8081}

# Of a package, without importing it.
place_of() {
    python -c "from importlib.util import find_spec as f; print(*f('$1').submodule_search_locations)"
}

use_spark() {
    SPARK_HOME=$(place_of pyspark)
    export SPARK_HOME
    if [ -z "${JAVA_HOME:-}" ] && ! command -v java >/dev/null; then
        JAVA_HOME=$(python -c 'import os; from spark_plugin import java; java.provide_java()
print(os.environ["JAVA_HOME"])')
        export JAVA_HOME
    fi
}

# The address of this machine as others see it.
address() {
    echo "${SPARK_LOCAL_IP:-$(hostname --ip-address | awk '{ print $1 }')}"
}

# The script by which Spark finds the GPUs of a machine.
discovery() {
    echo "$(place_of spark_plugin)/rapids/discover_gpus.sh"
}

# Tell health.py what this process becomes: role, process, address of its page.
become() {
    local folder=${WINNOW_RUN:-/tmp/winnow}
    mkdir -p "$folder"
    printf '%s\n' "$@" >"$folder/role"
}

role=${1:-}
case $role in
    master)
        shift
        use_spark
        host=${SPARK_MASTER_HOST:-$(address)}
        become master $$ "http://$host:$SPARK_MASTER_WEBUI_PORT"
        exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master \
            --host "$host" --port "$master_port" --webui-port "$SPARK_MASTER_WEBUI_PORT" "$@"
        ;;
    worker)
        shift
        use_spark
        case ${1:-} in
            spark://*)
                SPARK_MASTER=$1
                shift
                ;;
        esac
        host=$(address)
        if [ -n "${WINNOW_GPUS:-}" ]; then
            SPARK_WORKER_OPTS="${SPARK_WORKER_OPTS:-} -Dspark.worker.resource.gpu.amount=$WINNOW_GPUS"
            SPARK_WORKER_OPTS+=" -Dspark.worker.resource.gpu.discoveryScript=$(discovery)"
            export SPARK_WORKER_OPTS
        fi
        become worker $$ "http://$host:$SPARK_WORKER_WEBUI_PORT"
        exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker \
            --host "$host" --webui-port "$SPARK_WORKER_WEBUI_PORT" "$@" \
            "${SPARK_MASTER:?the address of the master, as spark://master:7077}"
        ;;
    submit)
        shift
        use_spark
        become submit $$ ""
        PYSPARK_PYTHON=${PYSPARK_PYTHON:-$(command -v python)}
        export PYSPARK_PYTHON
        # Executors call the driver back by its address: nobody can resolve a container's name.
        exec "$SPARK_HOME/bin/spark-submit" \
            --master "${SPARK_MASTER:?the address of the master, as spark://master:7077}" \
            --conf "spark.driver.host=$(address)" --conf spark.driver.bindAddress=0.0.0.0 \
            "$(place_of spark_plugin)/submit.py" "$@"
        ;;
    conf)
        shift
        become conf $$ ""
        file=${SPARK_CONF_DIR:?the folder of spark-defaults.conf}/spark-defaults.conf
        winnow spark-conf --discovery "$(discovery)" --format properties "$@" >"$file.tmp"
        mv "$file.tmp" "$file"
        ;;
    *)
        become winnow $$ ""
        exec winnow "$@"
        ;;
esac
