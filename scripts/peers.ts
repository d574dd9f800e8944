/**
 * Finds packages that are installed more than once in a project.
 *
 * A service of Effect is found by its key, and a value by its class, so a program with two copies of `effect` has errors
 * that no message explains. Packages that share Effect with the application therefore declare it as a peer.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const isShared = /(?:^|[/\\])node_modules[/\\]((?:@effect|@skein)[/\\][^/\\]+|effect)[/\\]package\.json$/

/** Returns the shared packages of a project that have several copies, with the version of each copy. */
export const findCopies = (project: string): ReadonlyArray<string> => {
  const versions = new Map<string, Array<string>>()
  const folder = join(project, "node_modules")
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const name = isShared.exec(join("node_modules", path))?.[1]?.replace("\\", "/")
    if (name === undefined) continue
    const { version } = JSON.parse(readFileSync(join(folder, path), "utf8")) as { readonly version?: string }
    versions.set(name, [...versions.get(name) ?? [], version ?? "no version"])
  }
  return [...versions].filter(([, all]) => all.length > 1).map(([name, all]) => `${name}: ${all.join(", ")}`)
}

/** Fails if a shared package has several copies. */
export const checkCopies = (project: string): void => {
  const copies = findCopies(project)
  if (copies.length > 0) throw new Error(`${project} has several copies of\n${copies.join("\n")}`)
}
