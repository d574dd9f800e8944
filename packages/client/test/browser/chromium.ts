/** Headless Chromium for one page that reports its own result. */
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "headless_shell"]

const runs = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Returns the path of Chromium: `CHROMIUM`, or else the first usual name in the `PATH`. */
export const find = (env: NodeJS.ProcessEnv = process.env): string | undefined => {
  const given = env["CHROMIUM"]
  if (given !== undefined) return runs(given) ? given : undefined
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "")
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(runs)
}

const flags = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-extensions",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-breakpad",
  "--disable-popup-blocking",
  "--no-first-run",
  "--no-default-browser-check"
]

/** A browser that opens a page. Closing the scope kills its process group and removes its profile. */
const visit = (chromium: string, url: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const profile = mkdtempSync(join(tmpdir(), "skein-browser-"))
      // A group leader, so that the whole group can be killed.
      const child = spawn(chromium, [...flags, `--user-data-dir=${profile}`, url], {
        detached: true,
        stdio: ["ignore", "ignore", "pipe"]
      })
      let stderr = ""
      child.stderr.setEncoding("utf8").on("data", (text: string) => void (stderr = (stderr + text).slice(-4_096)))
      const ended = new Promise<string>((resolve) => {
        child.once("error", (error) => resolve(error.message))
        child.once("exit", (code, signal) => resolve(`exit ${code ?? signal}`))
      })
      return { child, ended, profile, stderr: () => stderr }
    }),
    ({ child, ended, profile }) =>
      Effect.promise(async () => {
        if (child.pid !== undefined) {
          try {
            process.kill(-child.pid, "SIGKILL")
          } catch {
            // The process has already exited.
          }
        }
        await ended
        rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
      })
  )

const html = (script: string): string =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script src="/program.js"></script>` +
  `<script>(async () => { ${script} })().then(JSON.stringify, (error) => JSON.stringify(String(error)))` +
  `.then((body) => fetch("/seen", { method: "POST", body }))</script>`

/**
 * Opens a page with the program in a browser, and returns the result of `script`, which is the body of an `async`
 * function. `files` are additional scripts and pages by path.
 */
export const browse = (
  chromium: string,
  program: string,
  script: string,
  files: Readonly<Record<string, string>> = {}
): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { promise, reject, resolve } = Promise.withResolvers<unknown>()
    const found: Readonly<Record<string, string>> = { ...files, "/program.js": program }
    const { url } = yield* RawServer.http((request, response) => {
      const { method } = request
      const url = request.url!.split("?")[0]!
      if (method === "POST") {
        response.end()
        RawServer.readBody(request).then(JSON.parse).then(resolve, reject)
      } else if (found[url] !== undefined) {
        const type = url.endsWith(".js") ? "text/javascript; charset=utf-8" : "text/html"
        response.writeHead(200, { "content-type": type }).end(found[url])
      } else if (url === "/") response.writeHead(200, { "content-type": "text/html" }).end(html(script))
      else response.writeHead(404).end()
    })
    const { ended, stderr } = yield* visit(chromium, `${url.origin}/`)
    void ended.then((how) => reject(new Error(`${chromium} ended before its page did (${how}):\n${stderr()}`)))
    return yield* Effect.timeoutOrElse(Effect.promise(() => promise), {
      duration: "60 seconds",
      orElse: () =>
        Effect.die(new Error(`The page reported nothing within 60 seconds. ${chromium} wrote:\n${stderr()}`))
    })
  })
