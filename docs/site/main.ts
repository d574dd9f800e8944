/**
 * `npm run site`: builds the documentation site into `docs/site/dist/site`, and fails on a dead link.
 *
 * The site has packages and a lock file of its own, so that `npm ci` at the root does not download them: the first build
 * installs them. `npm run site -- --serve` builds, and serves the site on the loopback interface until Ctrl+C. With
 * `--url https://example.org/skein/` the site is for that address: its links begin with the path, and `llms.txt` has
 * complete addresses.
 */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { writeApi } from "./api.ts"
import { deadLinks } from "./links.ts"
import { writeLlms } from "./llms.ts"
import { built, site, staging } from "./places.ts"
import { serveSite } from "./serve.ts"
import { stage } from "./stage.ts"

const { values } = parseArgs({
  options: {
    serve: { type: "boolean", default: false },
    port: { type: "string", default: "4173" },
    url: { type: "string" }
  }
})

const run = (file: string, ...args: ReadonlyArray<string>): void =>
  void execFileSync(file, args, { cwd: site, stdio: "inherit" })

const json = (path: string): { readonly version?: string; readonly dependencies?: Readonly<Record<string, string>> } =>
  JSON.parse(readFileSync(join(site, path), "utf8"))

/** Installs the packages of the lock file, unless they are installed. */
const install = (): void => {
  const isInstalled = ([name, version]: readonly [string, string]): boolean => {
    const path = `node_modules/${name}/package.json`
    return existsSync(join(site, path)) && json(path).version === version
  }
  if (!Object.entries(json("package.json").dependencies ?? {}).every(isInstalled)) run("npm", "ci", "--silent")
}

const step = async (name: string, action: () => void | Promise<void>): Promise<void> => {
  const start = performance.now()
  await action()
  console.log(`${name}: ${Math.round(performance.now() - start)} ms`)
}

const url = values.url === undefined ? undefined : new URL(values.url)
const base = url?.pathname ?? "/"
if (!base.endsWith("/")) throw new Error(`--url must end with a slash: ${values.url}`)

await step("packages", install)
await step("types", () => run(process.execPath, "node_modules/typescript/bin/tsc", "-p", "."))
await step("pages", () => {
  rmSync(staging, { recursive: true, force: true })
  stage(staging)
  cpSync(join(site, "home.md"), join(staging, "index.md"))
  cpSync(join(site, "icon.svg"), join(staging, "public/icon.svg"))
  cpSync(join(site, "../tour.svg"), join(staging, "public/tour.svg"))
})
await step("API", writeApi)
const { build } = await import("vitepress")
await step("site", async () => {
  process.env["SKEIN_SITE_BASE"] = base
  await build(site)
})
await step("llms.txt", () => writeLlms(url ?? base))
await step("links", () => {
  const dead = deadLinks(built, base)
  for (const link of dead) console.error(link)
  if (dead.length > 0) throw new Error(`${dead.length} dead links`)
})
if (values.serve) {
  await serveSite(built, base, Number(values.port))
  console.log(`Listening on http://127.0.0.1:${values.port}${base}`)
}
