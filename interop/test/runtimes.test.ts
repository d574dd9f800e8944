/** The server and the client on Bun and Deno, which `npm run published` installs, and on Node beside them. */
import { spawn } from "node:child_process"
import { globSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { describe, expect, it } from "vitest"
import { missingOf, program } from "../published/installation.ts"

const missing = missingOf(["bun", "deno"])

// The package `bun` copies a build for this processor in a script of its installation, which npm may not run.
const bun = globSync(program("bun", "../@oven/bun-*/bin/bun"))[0] ?? "bun"

const runtimes = {
  node: { command: process.execPath, args: ["--conditions=@skein/source"], checks: 6 },
  bun: { command: bun, args: ["--conditions=@skein/source"], checks: 10 },
  deno: {
    command: process.execPath,
    args: [program("deno", "bin.cjs"), "run", "-A", "--conditions=@skein/source", "--node-modules-dir=manual"],
    checks: 10
  }
}

describe.skipIf(missing !== undefined).each(Object.entries(runtimes))("%s", (_name, { args, checks, command }) => {
  it("serves over its HTTP servers and stdio, and calls over fetch, node:http and stdio", async () => {
    const check = join(import.meta.dirname, "../runtimes/check.ts")
    const child = spawn(command, [...args, check], {
      cwd: join(import.meta.dirname, "../.."),
      stdio: ["ignore", "pipe", "pipe"]
    })
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
    const lines = out.trimEnd().split("\n").filter((line) => /^(ok|failed) |failed$/.test(line))
    expect(lines.at(-1), `${out}\n${err}`).toBe("0 failed")
    expect(lines.filter((line) => line.startsWith("ok "))).toHaveLength(checks)
  }, 240_000)
})
