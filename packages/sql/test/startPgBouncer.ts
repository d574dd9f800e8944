/**
 * Starts PgBouncer for tests, in front of a server of `postgres.ts`: on a free port of loopback, in a temporary folder.
 * It ends with the process that started it, also after `kill -9`.
 */
import { spawn } from "node:child_process"
import { accessSync, constants, rmSync, writeFileSync } from "node:fs"
import type { Socket } from "node:net"
import { delimiter, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Client } from "pg"
import { ownFolder, timeLimits, user } from "./postgres.ts"
import { freePort } from "../../../scripts/freePort.ts"

export interface PgBouncer {
  /** Returns the URL of a database through PgBouncer. */
  readonly through: (url: string) => string
  /** Kills PgBouncer, and starts it again on the same port. */
  readonly restart: () => Promise<void>
  /** Stops PgBouncer and removes its folder. */
  readonly stop: () => Promise<void>
}

/** Milliseconds in which PgBouncer must start. */
const maxMillis = 30_000

const program = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"]
  .map((folder) => join(folder, "pgbouncer"))
  .find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** The reason why PgBouncer cannot run here, or `undefined`. Under CI tests fail with it; elsewhere they are skipped. */
export const noPgBouncer: string | undefined = program === undefined
  ? "pgbouncer is neither in PATH nor in /usr/sbin"
  : undefined

/** Starts PgBouncer in front of the server on `serverPort`. */
export const startPgBouncer = async (
  serverPort: number,
  options: {
    readonly poolMode: "session" | "transaction"
    /** Whether a transaction gets the connection that is unused for the longest time; by default the one used last. */
    readonly roundRobin?: boolean
  }
): Promise<PgBouncer> => {
  if (program === undefined) throw new Error(noPgBouncer)
  const account = user()
  const folder = ownFolder(account)
  const port = await freePort()
  const file = join(folder, "pgbouncer.ini")
  writeFileSync(
    file,
    `[databases]
* = host=127.0.0.1 port=${serverPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${options.poolMode}
default_pool_size = 80
server_round_robin = ${options.roundRobin === true ? 1 : 0}
`,
    { mode: 0o644 }
  )
  let log = ""
  /** Starts the program, and returns the function that ends it. */
  const run = () => {
    // The pipe closes with this process; then the shell stops PgBouncer.
    const shell = spawn("/bin/sh", [
      "-c",
      `"$0" "$1" & read -r signal; kill "-\${signal:-INT}" $!; wait`,
      program,
      file
    ], {
      ...account,
      cwd: folder,
      detached: true,
      stdio: ["pipe", "ignore", "pipe"]
    })
    shell.unref()
    shell.stderr.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-10_000)
    })
    for (const pipe of [shell.stdin, shell.stderr] as unknown as ReadonlyArray<Socket>) pipe.unref()
    return async (signal: "INT" | "KILL") => {
      shell.ref()
      shell.stdin.end(`${signal}\n`)
      if (shell.exitCode === null) await new Promise((resolve) => shell.once("exit", resolve))
    }
  }
  let end = run()
  const through = (url: string): string => url.replace(`:${serverPort}/`, `:${port}/`)

  const stop = async () => {
    await end("INT")
    rmSync(folder, { recursive: true, force: true })
  }
  const restart = async () => {
    await end("KILL")
    end = run()
    await ready()
  }
  const ready = async () => {
    const limit = performance.now() + maxMillis
    while (true) {
      const client = new Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`, ...timeLimits })
      client.on("error", () => {})
      try {
        await client.connect()
        await client.query("SELECT 1")
        return
      } catch (cause) {
        if (performance.now() > limit) {
          await stop()
          throw new Error(`PgBouncer does not start: ${log}`, { cause })
        }
        await sleep(20)
      } finally {
        await client.end().catch(() => {})
      }
    }
  }
  await ready()
  return { through, restart, stop }
}
