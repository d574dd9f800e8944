/**
 * Copies the pages of `docs` into the folder that VitePress reads. The pages are written for GitHub. Their copies differ
 * in their links: a link to another page leads to its copy, and a link to any other file leads to GitHub. A link to a file
 * that does not exist is an error.
 */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { docs, type Page, pages, read, root, sitePath } from "./sidebar.ts"

/** The repository on GitHub. */
export const repository = "https://github.com/skein-mcp/skein"

const isPage: ReadonlySet<Page> = new Set(pages)

/** The target of a link in a page, for its copy. */
const linkFrom = (page: Page, target: string): string => {
  if (/^[a-z]+:|^#/.test(target)) return target
  const [path = "", anchor] = target.split("#")
  const hash = anchor === undefined ? "" : `#${anchor}`
  const file = join(docs, dirname(page), path)
  const to = relative(docs, file)
  if (!existsSync(file)) throw new Error(`${page}: the link ${target} leads to a file that does not exist`)
  if (isPage.has(to)) return relative(dirname(sitePath(page)), sitePath(to)) + hash
  const kind = statSync(file).isDirectory() ? "tree" : "blob"
  return `${repository}/${kind}/main/${relative(root, file)}${hash}`
}

/** The parts of a page that are code, or comments, which may have marks of code in them. */
const codeOrComment = /(^```[^]*?^```$| ?<!--[^]*?-->|``(?:[^`\n]|`(?!`))+``|`[^`\n]+`)/m

/** The text of a page for the site: without comments, and with other links. */
export const staged = (page: Page, text = read(page)): string =>
  text.split(codeOrComment).map((part, index) =>
    index % 2 === 0
      ? part.replaceAll(/\]\(([^)\s]+)\)/g, (_, target: string) => `](${linkFrom(page, target)})`)
      : /^ ?<!--/.test(part)
      ? ""
      : part
  ).join("")

/** Writes all pages into a folder. */
export const stage = (folder: string): void => {
  for (const page of pages) {
    const path = join(folder, sitePath(page))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, staged(page))
  }
}
