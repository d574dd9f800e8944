/** The servers of the quickstarts, in a project that `npm init` wrote, for `npm run projects`. */
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
 * Makes the project as the quickstarts say, and starts each server that they show after a check of its types.
 * `packages` are the tarballs of Skein.
 */
export const startQuickstarts = async (
  folder: string,
  packages: ReadonlyArray<string>,
  runNpm: (cwd: string, ...args: ReadonlyArray<string>) => string
): Promise<void> => {
  mkdirSync(folder)
  runNpm(folder, "init", "--yes")
  runNpm(folder, "pkg", "set", "type=module")
  const installing = ["install", "--prefer-offline", "--no-audit", "--no-fund", "--silent"]
  runNpm(folder, ...installing, ...packages, "effect", "zod", "typescript", "@types/node")
  const settings = blocksOf("getting-started.md").find(({ text }) => text.includes("compilerOptions"))
  if (settings === undefined) throw new Error("getting-started.md shows no tsconfig.json")
  writeFileSync(join(folder, "tsconfig.json"), settings.text)
  for (const page of ["quickstart-stdio.md", "quickstart-http.md"]) {
    // The page about HTTP has a tool of its own after them, whose programs have names of the project.
    const servers = blocksOf(page).filter(({ info, text }) =>
      info.startsWith("ts ") && text.includes("name: \"hello\"")
    )
    if (servers.length !== 2) throw new Error(`${page} shows ${servers.length} servers instead of two`)
    for (const { info, text } of servers) {
      writeFileSync(join(folder, "server.ts"), text.replace("port: 3000", "port: 0"))
      execFileSync(process.execPath, ["node_modules/typescript/bin/tsc"], { cwd: folder, stdio: "inherit" })
      const answer = page === "quickstart-http.md"
        ? await askHttp(folder)
        : execFileSync(process.execPath, ["server.ts"], { cwd: folder, encoding: "utf8", input: `${initialize}\n` })
      if (!answer.includes("\"name\":\"hello\"")) throw new Error(`${page}, ${info}: ${answer}`)
      console.log(`${page}, ${info}: checked and started`)
    }
  }
}
