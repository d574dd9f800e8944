import { describe, expect, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))

/**
 * Runs a host whose server ignores the end of stdin and SIGTERM. Resolves when the server has written all the words of
 * `reported` to stderr.
 */
const leaving = (how: string, reported: ReadonlyArray<string>) =>
  new Promise<{ readonly stderr: string; readonly exit: number | string }>((resolve) => {
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
      process.kill(server, "SIGKILL")
      resolve({ stderr, exit })
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

  it("ends its servers' stdin when a signal that it does not handle kills it", async () => {
    expect(await leaving("signal", ["eof"])).toEqual({ exit: "SIGINT", stderr: "eof\n" })
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
