import { describe, expect, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))

/** Whether a process runs. A zombie does not: its parent has not reaped it. */
const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return process.platform !== "linux" || !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return false
  }
}

/**
 * Runs a host whose server ignores the end of stdin and SIGTERM. Resolves when the server has written all the words of
 * `reported` to stderr, and kills it unless the host does that.
 */
const leaving = (how: string, reported: ReadonlyArray<string>, kills = false) =>
  new Promise<{ readonly stderr: string; readonly exit: number | string; readonly server: number }>((resolve) => {
    const host = spawn(
      process.execPath,
      ["--conditions=@skein/source", fixture("host.ts"), fixture("server.ts"), how],
      {
        stdio: ["ignore", "pipe", "pipe"]
      }
    )
    let server = 0
    let stderr = ""
    let exit: number | string | undefined
    const look = () => {
      if (exit === undefined || !reported.every((word) => stderr.includes(`${word}\n`))) return
      if (!kills) process.kill(server, "SIGKILL")
      resolve({ stderr, exit, server })
    }
    host.stdout.on("data", (chunk) => server = Number(chunk))
    host.stderr.on("data", (chunk) => {
      stderr += chunk
      look()
    })
    host.once("exit", (code, signal) => {
      exit = code ?? signal!
      look()
    })
  })

describe("a host that exits without closing its scopes", () => {
  it("sends SIGTERM and the end of stdin to its servers on exit, and shares its stderr with them by default", async () => {
    const { exit, stderr } = await leaving("exit", ["eof", "term"])
    expect(exit).toBe(0)
    expect(stderr.split("\n").toSorted()).toEqual(["", "eof", "term"])
  })

  it("does the same on an uncaught exception", async () => {
    const { exit, stderr } = await leaving("throw", ["eof", "term"])
    expect(exit).toBe(1)
    expect(stderr).toContain("nobody catches this")
  })

  it("sends SIGKILL to servers that got SIGTERM before it exits", async () => {
    const { exit, server } = await leaving("closing", ["term"], true)
    expect(exit).toBe(0)
    await expect.poll(() => isRunning(server), { timeout: 60_000 }).toBe(false)
  })

  it("ends its servers' stdin when a signal that it does not handle kills it", async () => {
    expect(await leaving("signal", ["eof"])).toMatchObject({ exit: "SIGINT", stderr: "eof\n" })
  })
})

it.skipIf(process.platform === "win32")(
  "a host without file descriptors gets an OpenFailed error, and starts servers again when it has some",
  async () => {
    const command = "ulimit -n 64; exec \"$0\" --conditions=@skein/source \"$1\""
    const host = spawn("sh", ["-c", command, process.execPath, fixture("crowded.ts")], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let out = ""
    host.stdout.on("data", (chunk) => out += chunk)
    const exit = await new Promise((resolve) => host.once("close", resolve))
    expect(exit).toBe(0)
    expect(out).toBe("OpenFailed started")
  }
)
