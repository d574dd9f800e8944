/**
 * Imports the modules of each package in projects that have only what a README says to install.
 *
 * `npm run pack` runs it with the tarballs, and with `--quick` leaves out the READMEs of packages. Each line `npm install …` of `README.md`, `docs/by-hand.md` and the README of a
 * package is a project of its own. npm installs no optional peer there, so each module that needs one is listed here.
 */
import { execFileSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { root } from "./build.ts"
import { publicModules } from "./publicModules.ts"
import { runNpm } from "./tarballs.ts"

/** The modules that cannot be imported without an optional peer, with the peer. Their doc comments name it. */
export const needs: Readonly<Record<string, string>> = {
  "@skein/auth/Protect": "@skein/server",
  "@skein/auth/Proxy": "@skein/server",
  "@skein/auth/RequestVerifier": "@skein/server",
  "@skein/auth/Scopes": "@skein/server",
  "@skein/auth/UpstreamToken": "@skein/server",
  "@skein/server/NodeRoutes": "@effect/platform-node"
}

/** The lines of `README.md` that add to a project, with the packages that the project has. */
const additions: Readonly<Record<string, ReadonlyArray<string>>> = {
  "@skein/auth oidc-provider": ["@skein/client effect", "@skein/server effect"]
}

/** Returns the packages of each project that a page says to install, as in `"@skein/server effect"`. */
export const projectsOf = (page: string): ReadonlyArray<string> =>
  Array.from(page.matchAll(/^npm install ([^#\n]+)/gm), ([, words = ""]) => words.replace(/--\S+/g, "").trim())
    .filter((line) => /(?:^| )(?:@skein\/|skein\b)/.test(line))
    .flatMap((line) => additions[line]?.map((others) => `${line} ${others}`) ?? [line])

/** The projects of all pages, without repeats. `isQuick` leaves out the READMEs of packages. */
export const projects = (isQuick = false): ReadonlyArray<string> => {
  const readmes = isQuick ? [] : globSync("packages/*/README.md", { cwd: root }).toSorted()
  const pages = ["README.md", "docs/by-hand.md", ...readmes]
  return [...new Set(pages.flatMap((page) => projectsOf(readFileSync(join(root, page), "utf8"))))]
}

/** The import paths of the modules of a package. */
const modulesOf = (name: string): ReadonlyArray<string> =>
  publicModules(join(root, "packages", name.replace("@skein/", "")))
    .map((module) => module.name === "index" ? name : `${name}/${module.name}`)

/** The version of a package in this repository, or the newest one if only users install it. */
const versionOf = (name: string): string => {
  const manifest = join(root, "node_modules", name, "package.json")
  return existsSync(manifest)
    ? (JSON.parse(readFileSync(manifest, "utf8")) as { readonly version: string }).version
    : "*"
}

/** A program that imports modules, and prints the message of each that fails. */
const program = `
const failures = {}
for (const name of process.argv.slice(2)) {
  await import(name).catch((error) => { failures[name] = error.code + ": " + error.message })
}
console.log(JSON.stringify(failures))
`

/** Empties a project except for the folder of `effect`, which every project needs and which takes longest to install. */
const keepEffect = (folder: string): void => {
  const installed = join(folder, "node_modules")
  for (const name of readdirSync(installed)) {
    if (name !== "effect") rmSync(join(installed, name), { recursive: true })
  }
  rmSync(join(folder, "package-lock.json"))
}

/**
 * Installs each project and imports all modules of its packages. Fails if a module cannot be imported, except those of
 * `needs` without their peer, which must fail and name it. Returns the number of projects.
 */
export const checkEntries = (folder: string, tarballs: ReadonlyArray<string>, isQuick: boolean): number => {
  const files = Object.fromEntries(
    tarballs.filter((path) => basename(path).startsWith("skein-"))
      .map((path) => {
        const name = /^skein-(.+?)-\d/.exec(basename(path))?.[1]
        return [name === undefined ? "skein" : `@skein/${name}`, `file:${path}`]
      })
  )
  const refused = new Set<string>()
  const all = projects(isQuick)
  for (const line of all) {
    const packages = line.split(" ")
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({
        private: true,
        type: "module",
        dependencies: Object.fromEntries(packages.map((name) => [name, files[name] ?? versionOf(name)])),
        // The dependencies of a tarball are tarballs too.
        overrides: files
      })
    )
    runNpm(folder, "install", "--prefer-offline", "--no-audit", "--no-fund", "--silent")
    const modules = packages.filter((name) => name in files).flatMap(modulesOf)
    writeFileSync(join(folder, "entries.js"), program)
    const output = execFileSync(process.execPath, ["entries.js", ...modules], { cwd: folder, encoding: "utf8" })
    const failures = JSON.parse(output) as Readonly<Record<string, string>>
    for (const module of modules) {
      const peer = needs[module]
      const isMissing = peer !== undefined && !existsSync(join(folder, "node_modules", peer))
      const failure = failures[module] ?? ""
      const isExpected = isMissing
        ? failure.startsWith(`ERR_MODULE_NOT_FOUND: Cannot find package '${peer}' `)
        : failure === ""
      const outcome = failure === "" ? `works without ${peer}` : `fails: ${failure}`
      if (!isExpected) throw new Error(`after npm install ${line}, import "${module}" ${outcome}`)
      if (isMissing) refused.add(module)
    }
    keepEffect(folder)
  }
  rmSync(folder, { recursive: true })
  const stale = Object.keys(needs).filter((module) => !refused.has(module))
  if (!isQuick && stale.length > 0) throw new Error(`no project lacks the peers of ${stale.join(", ")}`)
  return all.length
}
