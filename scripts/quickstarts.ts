/** The server of `by-hand.md`, in a project that `npm init` wrote, for `npm run projects`. */
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { blocksOf } from "../docs/test/blocks.ts"

const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "projects", version: "1.0.0" } }
})

/** Starts a server over HTTP on a free port, and returns its response to `initialize`. */
const askHttp = (folder: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["server.ts"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] })
    let log = ""
    let answer: Promise<string> | undefined
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text
      const url = /Listening on (http:\S+)/.exec(log)?.[1]
      if (url === undefined || answer !== undefined) return
      const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" }
      answer = fetch(url, { method: "POST", headers, body: initialize }).then((response) => response.text())
      answer.finally(() => child.kill("SIGTERM")).then(resolve, reject)
    })
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)))
  })

/**
 * Makes the project as `by-hand.md` says, and starts the server that it shows, on stdio and over HTTP, after a check of its
 * types. `tarball` is that of the package `skein`.
 */
export const startQuickstart = async (
  folder: string,
  tarball: string,
  runNpm: (cwd: string, ...args: ReadonlyArray<string>) => string
): Promise<void> => {
  mkdirSync(folder)
  runNpm(folder, "init", "--yes")
  runNpm(folder, "pkg", "set", "type=module")
  const installing = ["install", "--prefer-offline", "--no-audit", "--no-fund", "--silent"]
  runNpm(folder, ...installing, tarball, "zod", "typescript", "@types/node")
  const blocks = blocksOf("by-hand.md")
  const settings = blocks.find(({ text }) => text.includes("compilerOptions"))
  const server = blocks.find(({ info, text }) => info.startsWith("ts ") && text.includes("name: \"hello\""))
  if (settings === undefined || server === undefined) {
    throw new Error("by-hand.md lacks the tsconfig.json or the server")
  }
  writeFileSync(join(folder, "tsconfig.json"), settings.text)
  const check = (text: string): void => {
    writeFileSync(join(folder, "server.ts"), text)
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc"], { cwd: folder, stdio: "inherit" })
  }
  const { info, text } = server
  check(text)
  const input = `${initialize}\n`
  const answer = execFileSync(process.execPath, ["server.ts"], { cwd: folder, encoding: "utf8", input })
  check(text.replace(".runStdio()", ".runHttp({ port: 0 })"))
  for (const each of [answer, await askHttp(folder)]) {
    if (!each.includes("\"name\":\"hello\"")) throw new Error(`${info}: ${each}`)
  }
  console.log(`${info}: checked and started, on stdio and over HTTP`)
}
