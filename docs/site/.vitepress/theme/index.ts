/** The default theme with diagrams, and with links to the programs that the guides show. */
import type { Theme } from "vitepress"
import DefaultTheme from "vitepress/theme"
import MermaidDiagram from "./MermaidDiagram.ts"
// oxlint-disable-next-line import/no-unassigned-import -- A stylesheet has no value.
import "./style.css"

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => void app.component("MermaidDiagram", MermaidDiagram)
} satisfies Theme
