/** Checks the links of the built site: each one to a page, an anchor or a file of the site must have its target. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"

const decode = (text: string): string => decodeURIComponent(text.replaceAll("&amp;", "&"))

/** The file that a static server returns for a path, or `undefined`. */
export const fileOf = (folder: string, path: string): string | undefined =>
  [path, `${path}.html`, join(path, "index.html")].find((file) => {
    const full = join(folder, file)
    return existsSync(full) && statSync(full).isFile()
  })

/** A description of each dead link in a folder of HTML files. `base` is the path that the site has on its server. */
export const deadLinks = (folder: string, base: string): ReadonlyArray<string> => {
  const pages = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".html"))
  const html = new Map(pages.map((page) => [page, readFileSync(join(folder, page), "utf8")]))
  const ids = new Map(
    Array.from(
      html,
      ([page, text]) => [page, new Set(Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id = ""]) => decode(id)))]
    )
  )
  const dead = new Set<string>()
  for (const [page, text] of html) {
    for (const [, target = ""] of text.matchAll(/ (?:href|src)="([^"]+)"/g)) {
      if (/^(?:[a-z]+:|\/\/)/.test(target)) continue
      const { hash, pathname } = new URL(target.replaceAll("&amp;", "&"), `http://site${base}${page}`)
      const path = decodeURIComponent(pathname)
      const file = path.startsWith(base) ? fileOf(folder, path.slice(base.length)) : undefined
      if (file === undefined) dead.add(`${page}: ${target} does not exist`)
      else if (hash !== "" && ids.get(file)?.has(decode(hash.slice(1))) !== true) {
        dead.add(`${page}: ${target}: ${file} has no such anchor`)
      }
    }
  }
  return [...dead]
}
