#!/bin/sh
# Finds the Java that Spark will use ($JAVA_HOME/bin/java, else java on PATH) and sees that it is 17 or newer.
# As root on a machine with apt-get, installs one when it is not; elsewhere says what to install and exits 1.
set -u

NEEDED=17

# The java that Spark's own scripts would start.
java_path() {
    if [ -n "${JAVA_HOME:-}" ]; then
        echo "$JAVA_HOME/bin/java"
    else
        command -v java
    fi
}

# Major version of a java: 17.0.15 -> 17, 1.8.0_402 -> 8; nothing if it does not run.
java_major() {
    "$1" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

good_enough() {
    path=$(java_path) || path=''
    major=''
    [ -n "$path" ] && major=$(java_major "$path")
    [ -n "$major" ] && [ "$major" -ge "$NEEDED" ]
}

explain() {
    if [ -n "${JAVA_HOME:-}" ] && [ -z "$major" ]; then
        found="JAVA_HOME=$JAVA_HOME has no working bin/java"
    elif [ -n "$major" ]; then
        found="$path is Java $major"
    elif [ -n "$path" ]; then
        found="$path does not run"
    else
        found="there is no java on PATH"
    fi
    echo "java: Spark needs Java $NEEDED or newer, but $found." >&2
    if [ -n "${JAVA_HOME:-}" ]; then
        echo "java: unset JAVA_HOME to use the java on PATH, or set it to a Java $NEEDED or newer." >&2
    fi
    cat >&2 <<TEXT
java: to install one:
    Debian, Ubuntu    apt-get install openjdk-17-jre-headless   (where there is no 17: openjdk-21-jre-headless)
    Fedora, RHEL      dnf install java-17-openjdk-headless      (where there is no 17: java-21-openjdk-headless)
    macOS             brew install openjdk@17
TEXT
}

if good_enough; then
    echo "java: $path (version $major)"
    exit 0
fi

# A JAVA_HOME that is set wrongly is the user's to mend: Spark would go on using it, whatever we install.
if [ -z "${JAVA_HOME:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "java: no Java $NEEDED or newer; installing it with apt-get"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -q && {
        apt-get install -y -q openjdk-17-jre-headless || apt-get install -y -q openjdk-21-jre-headless
    }; then
        hash -r
        if good_enough; then
            echo "java: $path (version $major)"
            exit 0
        fi
    fi
fi

explain
exit 1
