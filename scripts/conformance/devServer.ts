/**
 * The authorization server scenarios of the official conformance suite, against `DevServer`. The suite opens a port for
 * the redirect and prints an authorization URL, which a test user visits.
 */
import * as DevServer from "@skein/auth/DevServer"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { connect } from "node:net"
import { dirname, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { freePort } from "../freePort.ts"

const manifest = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/package.json"))
const resource = "http://127.0.0.1:3999/mcp"

/** How long the suite may take, in milliseconds. It takes about a second. */
const suiteTimeout = 110_000

/** The output of the suite, its exit code, and how its sign-ins ended. */
export interface AuthorizationRun {
  readonly output: string
  readonly code: number | null
  readonly visits: ReadonlyArray<string>
}

/** Waits until a program listens on a port. The suite prints the URL, and then opens its port. */
const untilOpen = async (port: number): Promise<void> => {
  for (;;) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy()
        resolve(true)
      })
      socket.once("error", () => resolve(false))
    })
    if (isOpen) return
    await sleep(20)
  }
}

/** Runs all scenarios for authorization servers. The results of the scenarios are written below `folder`. */
export const runAuthorization = async (folder: string): Promise<AuthorizationRun> => {
  const port = await freePort()
  const server = await DevServer.start({
    resources: [resource],
    clients: [{ clientId: "referee", redirectUris: [`http://127.0.0.1:${port}/callback`] }]
  })
  const user = TestUser.make()
  const visits: Array<string> = []
  try {
    const args = [
      ...["authorization", "--url", server.issuer, "--client-id", "referee"],
      ...["--resource", resource, "--port", String(port), "-o", folder]
    ]
    const child = spawn(process.execPath, [join(dirname(manifest), "dist", "index.js"), ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: suiteTimeout,
      killSignal: "SIGKILL"
    })
    let output = ""
    let seen = 0
    const read = (text: string): void => {
      output += text
      // Whole lines only: an URL may arrive in two parts.
      const end = output.lastIndexOf("\n") + 1
      for (const [url] of output.slice(seen, end).matchAll(/^http:\/\/127\.0\.0\.1:\d+\/auth\?\S+$/gm)) {
        const ended = (how: string) => void visits.push(how)
        const visit = untilOpen(port).then(() => Effect.runPromise(user.visit(url)))
        visit.then(({ status }) => ended(String(status)), (error) => ended(String(error)))
      }
      seen = end
    }
    child.stdout.setEncoding("utf8").on("data", read)
    child.stderr.setEncoding("utf8").on("data", read)
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject)
      child.once("close", resolve)
    })
    return { output, code, visits }
  } finally {
    await server.close()
  }
}

if (import.meta.main) {
  const { code, output, visits } = await runAuthorization(process.argv[2] ?? "conformance-results")
  console.log(output)
  console.log(`sign-ins: ${visits.join(", ")}`)
  process.exitCode = code ?? 1
}
