/** The configuration of VitePress. `main.ts` writes the pages that it reads, and sets the variables of the environment. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type DefaultTheme, defineConfig, type MarkdownEnv } from "vitepress"
import { apiPackages } from "../api.ts"
import { built, staging } from "../places.ts"
import { type Group, groups, labelOf, read, root, sitePath } from "../sidebar.ts"
import { repository } from "../stage.ts"
import { labelCells } from "../tables.ts"

/** The anchor of a heading, as GitHub makes it. */
const slugify = (title: string): string =>
  title.toLowerCase().replaceAll(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")

const linkOf = (path: string): string => `/${path.replace(/(^|\/)index\.md$|\.md$/, "$1")}`

const itemsOf = ({ pages }: Group): Array<DefaultTheme.SidebarItem> =>
  pages.map((entry) =>
    typeof entry === "string"
      ? { text: labelOf(read(entry)), link: linkOf(sitePath(entry)) }
      : itemOf(entry)
  )

/** A group without a mark for folding, unless it is folded. */
function itemOf(group: Group): DefaultTheme.SidebarItem {
  const items = itemsOf(group)
  return group.isFolded === true
    ? { text: group.title, collapsed: true, items }
    : { text: group.title, items }
}

const apiItems: Array<DefaultTheme.SidebarItem> = apiPackages().map(({ modules, name }) => ({
  text: `@skein/${name}`,
  collapsed: true,
  items: modules.map((module) => ({ text: module.name, link: `/api/${name}/${module.name}` }))
}))

const sidebar: DefaultTheme.SidebarMulti = {
  // A sidebar of its own: the names of all modules in each page would take half of the site's size.
  "/api/": [{ text: "API", link: "/api/", items: apiItems }],
  "/": groups.map((group) => {
    const item = itemOf(group)
    return group.title === "Reference" ? { ...item, items: [{ text: "API", link: "/api/" }, ...itemsOf(group)] } : item
  })
}

const { version } = JSON.parse(readFileSync(join(root, "packages/server/package.json"), "utf8")) as {
  readonly version: string
}

const base = process.env["SKEIN_SITE_BASE"] ?? "/"

/** The language of a code block that shows a file or a region of one, and the path of the file. */
const programOf = (info: string): readonly [language: string, path: string] | undefined => {
  const [, language, region, file] = /^(\w+) (?:(programs\/[\w./]+)#\w+|(examples\/[\w./-]+))$/.exec(info) ?? []
  return language === undefined ? undefined : [language, region === undefined ? file! : `docs/${region}`]
}

export default defineConfig({
  title: "Skein",
  description: "A Model Context Protocol runtime in TypeScript, built on Effect 4.",
  lang: "en",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}icon.svg` }]],
  srcDir: staging,
  outDir: built,
  base,
  // Pages load the hashes of all pages from one file, in the place of a copy in each page.
  metaChunk: true,
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark" },
    // GitHub does not turn `client.md` into a link.
    linkify: false,
    // `${name}` at the end of a cell is text.
    attrs: { disable: true },
    anchor: { slugify },
    config: (markdown) => {
      const { fence, text } = markdown.renderer.rules
      markdown.renderer.rules.fence = (tokens, index, options, env, self) => {
        const token = tokens[index]!
        if (token.info === "mermaid") return `<MermaidDiagram source="${encodeURIComponent(token.content)}" />`
        const program = programOf(token.info)
        if (program === undefined) return fence!(tokens, index, options, env, self)
        const [language, path] = program
        token.info = language
        const link = `<a href="${repository}/blob/main/${path}">${path}</a>`
        return `<div class="program">${fence!(tokens, index, options, env, self)}<p>${link}</p></div>`
      }
      labelCells(markdown)
      // A placeholder of a message, such as `<server>`, is text. TypeDoc writes HTML.
      for (const rule of ["html_inline", "html_block"] as const) {
        const raw = markdown.renderer.rules[rule]!
        markdown.renderer.rules[rule] = (tokens, index, options, env: MarkdownEnv, self) =>
          env.relativePath.startsWith("api/")
            ? raw(tokens, index, options, env, self)
            : markdown.utils.escapeHtml(tokens[index]!.content)
      }
      // Braces in prose are text, not expressions of Vue.
      markdown.renderer.rules.text = (tokens, index, options, env, self) =>
        text!(tokens, index, options, env, self).replaceAll("{{", "&#123;&#123;")
    }
  },
  themeConfig: {
    nav: [
      { text: "Start", link: "/quickstart-stdio" },
      { text: "Guides", link: "/guides" },
      { text: "API", link: "/api/" },
      { text: version, link: "/changelog" }
    ],
    sidebar,
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: {
        // Guides come before the pages of the API, the messages and the history. Of a page of the API, the comment of the
        // module and the names of its exports are found: with all members the index would be four times as large.
        miniSearch: {
          searchOptions: {
            boost: { title: 4, titles: 2 },
            boostDocument: (id: string) => /\/(?:api|messages|decisions|changes)\//.test(id) ? 0.2 : 1
          }
        },
        _render: (source, env, markdown) => {
          if (!env.relativePath.startsWith("api/")) return markdown.render(source, env)
          const names = source.split("\n").filter((line) => line.startsWith("### "))
          return markdown.render([source.split(/^## /m)[0], ...names].join("\n\n"), env)
        }
      }
    },
    notFound: {
      title: "Page not found",
      quote: "No page has this address. Search for it with the field above, or start at the home page.",
      linkText: "Home"
    },
    logo: "/icon.svg",
    socialLinks: [{ icon: "github", link: repository }]
  }
})
