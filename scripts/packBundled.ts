/**
 * Checks the packed package `skein` as its user has it: alone in a project, without another package.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { globSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { root } from "./build.ts"
import { publicModules } from "./publicModules.ts"

/** The most bytes of the installed package. */
const maxBytes = 8_000_000

/** The most characters that Node prints for an error that a program does not catch: the stack, and the line of the code. */
const maxReportChars = 5_000

/** The oldest compiler that reads the declarations, and the last one of each major version. */
const compilers: ReadonlyArray<string> = ["5.6", "5.9", "6.0"]

const run = (cwd: string, file: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(file, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })

/** The import paths of the package. */
const entriesOf = (folder: string): ReadonlyArray<string> =>
  publicModules(folder).map(({ name }) => name === "index" ? "skein" : `skein/${name}`)

/** A program that imports each entry as an ES module and as a CommonJS module, and expects the same values of both. */
const program = (entries: ReadonlyArray<string>): string =>
  `import { createRequire } from "node:module"
const require = createRequire(import.meta.url)
for (const name of ${JSON.stringify(entries)}) {
  const imported = await import(name)
  const required = require(name)
  if (Object.keys(imported).length === 0) throw new Error(name + " exports nothing")
  for (const key of Object.keys(imported)) if (imported[key] !== required[key]) throw new Error(name + ": " + key)
}
`

/** A program that signs in at an authorization server of its own. It needs `oidc-provider`, which the package does not contain. */
const signingIn = `import { AsyncServer } from "skein"
import { DevServer, Grant, OAuth, protect, TokenVerifier } from "skein/auth"
const client = { clientId: "job", clientSecret: "s" }
const { close, issuer } = await DevServer.start({ clients: [client] })
const server = await new AsyncServer({ name: "tea", version: "1.0.0" }).listen({ port: 0 })
const protection = protect({ resource: server.url, verify: TokenVerifier.jwt({ issuer }) })
await server.close()
const restarted = await new AsyncServer({ name: "tea", version: "1.0.0" }).listen({ port: server.port, protection })
const oauth = await OAuth.make({ grant: Grant.clientCredentials({ ...client, issuer }) })
await oauth.signIn(server.url)
const { expiresAt } = await oauth.state(server.url)
if (!(expiresAt > Date.now())) throw new Error("the token has no end")
await oauth.close()
await restarted.close()
await close()
`

/** A program that starts a file of the package: the faulty server over stdio. */
const faulty = `import { AsyncClient } from "skein/client"
import { FaultyServer } from "skein/testing"
const server = await FaultyServer.stdio({ faults: [] })
const client = await AsyncClient.connect({ command: server.command, args: server.args })
await client.callTool("echo", { key: "one" })
if (await server.callCount("one") !== 1) throw new Error("the faulty server has no record of the call")
await client.close()
await server.close()
`

/** A program for browsers and Workers: a server and a client of it, without any module of Node. */
const browsing = `import { AsyncServer } from "skein"
import { browserTokenStore, Grant, OAuth, webSignIn } from "skein/auth"
import { AsyncClient, Http, Stdio } from "skein/client"
import { webHandler } from "skein/http"
import * as z from "skein/zod"
const texts = new Map()
globalThis.localStorage = {
  getItem: (key) => texts.get(key) ?? null,
  removeItem: (key) => texts.delete(key),
  setItem: (key, value) => texts.set(key, value)
}
const redirectUri = "https://tea.example/back"
const grant = Grant.authorizationCode({ clientName: "Tea", redirectUri })
const oauth = await OAuth.make({ grant, signIn: webSignIn({ redirectUri }), store: browserTokenStore({ storage: "localStorage" }) })
const server = new AsyncServer({ name: "tea", version: "1.0.0" })
  .tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
const { close, handler } = webHandler(server, { allowedHosts: ["tea.example"] })
const fetch = (input, init) => handler(new Request(input, init))
const client = await AsyncClient.connect(Http.transport({ url: "https://tea.example/mcp", fetch }))
const { content } = await client.callTool("add", { a: 1, b: 2 })
if (content[0].text !== "3") throw new Error(JSON.stringify(content))
try {
  Stdio.transport({ command: "node" })
  throw new Error("a page starts no process")
} catch (error) {
  if (!error.message.includes("needs Node, Bun or Deno")) throw error
}
await client.close()
await close()
await oauth.close()
`

/** Bundles the program for browsers, which fails for a module of Node, and runs it. */
const browse = async (project: string): Promise<void> => {
  const outfile = join(project, "browsing.js")
  await build({
    absWorkingDir: project,
    bundle: true,
    format: "esm",
    logLevel: "error",
    outfile,
    platform: "browser",
    stdin: { contents: browsing, resolveDir: project }
  })
  run(project, process.execPath, outfile)
}

/** A program that does not catch an error. */
const failing = `import { AsyncClient } from "skein/client"
await AsyncClient.connect("http://127.0.0.1:9/mcp")
`

/**
 * Installs the tarball in an empty project, and checks it: one package within its size, every entry can be imported and
 * required, the program `skein` starts, an uncaught error is legible, and the declarations compile with old and new compilers. `install` runs npm.
 */
export const checkBundled = async (
  folder: string,
  project: string,
  tarball: string,
  install: (cwd: string, ...args: ReadonlyArray<string>) => void
): Promise<string> => {
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--silent"]
  mkdirSync(project)
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "alone", private: true, type: "module" }))
  install(project, "install", ...flags, tarball)
  const installed = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."))
  if (installed.join() !== "skein") throw new Error(`skein installs other packages: ${installed.join(", ")}`)
  const files = globSync("node_modules/skein/**/*", { cwd: project }).map((path) => statSync(join(project, path)))
  const bytes = files.reduce((sum, file) => file.isFile() ? sum + file.size : sum, 0)
  if (bytes > maxBytes) throw new Error(`skein has ${bytes} bytes, more than ${maxBytes}`)
  const entries = entriesOf(folder)
  writeFileSync(join(project, "alone.mjs"), program(entries))
  run(project, process.execPath, "alone.mjs")
  run(project, join(project, "node_modules/.bin/skein"), "--help")
  writeFileSync(join(project, "faulty.mjs"), faulty)
  run(project, process.execPath, "faulty.mjs")
  await browse(project)
  writeFileSync(join(project, "failing.mjs"), failing)
  const { stderr } = spawnSync(process.execPath, ["failing.mjs"], { cwd: project, encoding: "utf8" })
  if (!/^ClientError: No connection to 127\.0\.0\.1:9/m.test(stderr) || stderr.length > maxReportChars) {
    throw new Error(`an error is reported in ${stderr.length} characters: ${stderr.slice(0, 1_000)}`)
  }
  writeFileSync(join(project, "alone.ts"), entries.map((name, at) => `export * as m${at} from "${name}"\n`).join(""))
  install(
    project,
    "install",
    ...flags,
    "oidc-provider@9",
    ...compilers.map((version) => `typescript-${version}@npm:typescript@${version}`)
  )
  writeFileSync(join(project, "signingIn.mjs"), signingIn)
  run(project, process.execPath, "signingIn.mjs")
  const options = ["--noEmit", "--module", "nodenext", "--target", "es2022", "--strict", "--exactOptionalPropertyTypes"]
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")]
  for (const version of ["7", ...compilers]) {
    const [file, ...args] = version === "7"
      ? [join(root, "node_modules/.bin/tsc")]
      : [process.execPath, `node_modules/typescript-${version}/bin/tsc`]
    run(project, file!, ...args, ...options, ...types, "alone.ts")
    run(project, file!, ...args, ...options, ...types, "--skipLibCheck", "alone.ts")
  }
  const size = `${(bytes / 1_000_000).toFixed(1)} MB in ${files.length} files`
  return `skein alone: ${size}, ${entries.length} entries imported, required, and type-checked by ${
    1 + compilers.length
  } compilers`
}
