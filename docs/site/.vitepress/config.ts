/** The configuration of VitePress. `main.ts` writes the pages that it reads, and sets the variables of the environment. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type DefaultTheme, defineConfig } from "vitepress"
import { apiPackages } from "../api.ts"
import { built, staging } from "../places.ts"
import { type Group, groups, read, root, sitePath, titleOf } from "../sidebar.ts"
import { repository } from "../stage.ts"

/** The anchor of a heading, as GitHub makes it. */
const slugify = (title: string): string =>
  title.toLowerCase().replaceAll(/[^\p{L}\p{N}_\- ]/gu, "").replaceAll(" ", "-")

const linkOf = (path: string): string => `/${path.replace(/(^|\/)index\.md$|\.md$/, "$1")}`

const itemsOf = ({ pages }: Group): Array<DefaultTheme.SidebarItem> =>
  pages.map((entry) =>
    typeof entry === "string"
      ? { text: titleOf(read(entry)), link: linkOf(sitePath(entry)) }
      : { text: entry.title, collapsed: true, items: itemsOf(entry) }
  )

const apiItems: Array<DefaultTheme.SidebarItem> = apiPackages().map(({ modules, name }) => ({
  text: `@skein/${name}`,
  collapsed: true,
  items: modules.map((module) => ({ text: module, link: `/api/${name}/${module}` }))
}))

const sidebar: Array<DefaultTheme.SidebarItem> = groups.map((group) => ({
  text: group.title,
  items: group.title === "Reference"
    ? [{ text: "API", link: "/api/", collapsed: true, items: apiItems }, ...itemsOf(group)]
    : itemsOf(group)
}))

const { version } = JSON.parse(readFileSync(join(root, "packages/server/package.json"), "utf8")) as {
  readonly version: string
}

/** The file of which a code block of a guide is a region. */
const programOf = (info: string): string | undefined => /^ts (programs\/[\w.]+)#\w+$/.exec(info)?.[1]

export default defineConfig({
  title: "Skein",
  description: "A Model Context Protocol runtime in TypeScript, built on Effect 4.",
  lang: "en",
  srcDir: staging,
  outDir: built,
  base: process.env["SKEIN_SITE_BASE"] ?? "/",
  // Pages load the hashes of all pages from one file, in the place of a copy in each page.
  metaChunk: true,
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark" },
    // GitHub does not turn `client.md` into a link.
    linkify: false,
    anchor: { slugify },
    config: (markdown) => {
      const { fence, text } = markdown.renderer.rules
      markdown.renderer.rules.fence = (tokens, index, options, env, self) => {
        const token = tokens[index]!
        if (token.info === "mermaid") return `<MermaidDiagram source="${encodeURIComponent(token.content)}" />`
        const program = programOf(token.info)
        if (program === undefined) return fence!(tokens, index, options, env, self)
        token.info = "ts"
        const link = `<a href="${repository}/blob/main/docs/${program}">docs/${program}</a>`
        return `<div class="program">${fence!(tokens, index, options, env, self)}<p>${link}</p></div>`
      }
      // Braces in prose are text, not expressions of Vue.
      markdown.renderer.rules.text = (tokens, index, options, env, self) =>
        text!(tokens, index, options, env, self).replaceAll("{{", "&#123;&#123;")
    }
  },
  themeConfig: {
    nav: [
      { text: "Start", link: "/getting-started" },
      { text: "Guides", link: "/guides" },
      { text: "API", link: "/api/" },
      { text: version, link: "/changelog" }
    ],
    sidebar,
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: { miniSearch: { searchOptions: { boost: { title: 4, titles: 2 } } } }
    },
    socialLinks: [{ icon: "github", link: repository }]
  }
})
