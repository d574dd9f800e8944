/**
 * Starts a Redis server for tests, without persistence: on a free port of loopback, in a temporary folder. It ends with the
 * process that started it, also after `kill -9`.
 */
import { spawn } from "node:child_process"
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { beforeAll, describe } from "vitest"
import { freePort } from "../../../scripts/freePort.ts"
import { required } from "../../sql/test/postgres.ts"

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** Kills the server as `kill -9`. It is down until `start`. */
  readonly kill: () => Promise<void>
  /** Starts the server after `kill`, on the same port and without its data. */
  readonly start: () => Promise<void>
  /** Stops the process, as `kill -STOP`, and lets it continue. */
  readonly pause: () => void
  readonly resume: () => void
  /** Runs a command, and returns the lines of the answer. */
  readonly command: (...words: ReadonlyArray<string>) => Promise<ReadonlyArray<string>>
  readonly keys: (pattern: string) => Promise<ReadonlyArray<string>>
  readonly stop: () => Promise<void>
}

/** Milliseconds in which the server must start. */
const maxMillis = 30_000

// `REDIS_SERVER=valkey-server` chooses a program where there are both.
const named = process.env["REDIS_SERVER"]

const program = (named === undefined ? ["redis-server", "valkey-server"] : [named])
  .flatMap((name) => [...(process.env["PATH"] ?? "").split(delimiter), "/usr/bin"].map((folder) => join(folder, name)))
  .find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** The reason why no Redis can run here, or `undefined`. Under CI tests fail with it; elsewhere they are skipped. */
export const noRedis: string | undefined = program === undefined
  ? `${named ?? "redis-server"} is neither in PATH nor in /usr/bin`
  : undefined

/** Ends the server when the pipe closes. */
const keeper = `
trap '' PIPE
"$@" >/dev/null 2>&1 </dev/null & pid=$!
echo $pid
while read -r _; do :; done
kill -KILL $pid 2>/dev/null
`

/** Starts a server. `isCluster`: it is one of a cluster, and has no slots. */
export const startRedis = async (isCluster = false): Promise<RedisServer> => {
  if (program === undefined) throw new Error(noRedis)
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), "skein-redis-"))
  let running: { readonly pid: number; readonly end: () => Promise<void> } | undefined

  const command = (...words: ReadonlyArray<string>): Promise<ReadonlyArray<string>> =>
    new Promise((resolve, reject) => {
      const lines = (command: ReadonlyArray<string>) =>
        [`*${command.length}`, ...command.flatMap((word) => [`$${Buffer.byteLength(word)}`, word]), ""].join("\r\n")
      const socket = connect(port, "127.0.0.1", () => void socket.write(lines(words) + lines(["QUIT"])))
      let text = ""
      socket.setEncoding("utf8").setTimeout(maxMillis, () => void socket.destroy(new Error("Redis does not answer")))
      socket.on("error", reject)
      socket.on("data", (chunk: string) => void (text += chunk))
      // The answer of `QUIT` follows.
      socket.on("close", () => {
        if (text.endsWith("+OK\r\n")) resolve(text.split("\r\n").slice(0, -2))
        else reject(new Error(`Redis has closed the connection: ${text}`))
      })
    })

  const start = async () => {
    const shell = spawn("/bin/sh", [
      "-c",
      keeper,
      "redis",
      program,
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"],
      ...(isCluster ?
        [
          "--cluster-enabled",
          "yes",
          "--cluster-port",
          String(await freePort()),
          "--cluster-require-full-coverage",
          "no"
        ] :
        [])
    ], { cwd: folder, detached: true, stdio: ["pipe", "pipe", "ignore"] })
    shell.unref()
    for (const pipe of [shell.stdin, shell.stdout] as unknown as ReadonlyArray<Socket>) pipe.unref()
    const exited = new Promise<void>((resolve) => shell.once("exit", () => resolve()))
    const pid = await new Promise<number>((resolve) => {
      shell.stdout.once("data", (data: Buffer) => resolve(Number(data.toString())))
      ;(shell.stdout as unknown as Socket).ref()
    })
    ;(shell.stdout as unknown as Socket).unref()
    running = {
      pid,
      end: async () => {
        process.kill(pid, "SIGKILL")
        shell.ref()
        shell.stdin.end()
        await exited
      }
    }
    const end = performance.now() + maxMillis
    for (;;) {
      try {
        await command("PING")
        return
      } catch (cause) {
        if (performance.now() > end) throw new Error("Redis does not start", { cause })
        await sleep(20)
      }
    }
  }
  const kill = async () => {
    await running?.end()
    running = undefined
  }
  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    start,
    kill,
    pause: () => void process.kill(running!.pid, "SIGSTOP"),
    resume: () => void process.kill(running!.pid, "SIGCONT"),
    command,
    keys: async (pattern) => (await command("KEYS", pattern)).filter((_, index) => index > 0 && index % 2 === 0),
    stop: async () => {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

let ofProcess: Promise<RedisServer> | undefined

/** Describes tests with a Redis server that the test files of this process share, each with its own namespaces. */
export const describeRedis = (name: string, tests: (redis: () => RedisServer) => void): void => {
  const skipped = noRedis !== undefined && !required
  describe.skipIf(skipped)(skipped ? `${name} (${noRedis})` : name, () => {
    let redis: RedisServer | undefined
    beforeAll(async () => {
      redis = await (ofProcess ??= startRedis())
    }, 60_000)
    tests(() => {
      if (redis === undefined) throw new Error("the server has not been started")
      return redis
    })
  })
}
