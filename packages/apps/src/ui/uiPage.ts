/** The page that draws trees of components. It contains none of them: its script receives them with results. */
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as App from "../server/App.ts"
import { treeKey } from "../shared/pageQuestion.ts"
import { uiScript } from "../shared/pageScripts.ts"
import { page } from "../server/readyPages.ts"
import type { Node } from "./uiNode.ts"

const style = `
main { max-width: 960px; }
#form { display: contents; }
#tree:focus { outline: none; }
.column, .card { display: grid; gap: 14px; align-content: start; }
.column > *, .card > *, .grid > * { min-width: 0; }
.row { display: flex; flex-wrap: wrap; gap: 10px 12px; align-items: end; }
.row > .column { flex: 1 1 200px; }
.row > .field { flex: 1 1 160px; max-width: 320px; }
.row > .field > select { width: 100%; }
.row > :is(a, p) { align-self: center; }
.grid {
  display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(max(min(100%, var(--least, 120px)), calc((100% - (var(--columns) - 1) * 14px) / var(--columns))), 1fr));
}
.grid:has(> figure, > .scroll, > .card figure, > .card .scroll) { --least: 280px; }
.card {
  padding: 14px 16px; border-radius: var(--border-radius-md, 8px);
  border: 1px solid var(--color-border-primary, light-dark(#d9dfe4, #39444b));
}
#tree :is(h1, h2, h3, h4, p, figure, pre) { margin: 0; unicode-bidi: isolate; }
#tree h1 { font-size: 20px; }
#tree h2, #tree .card > h4 { font-size: 16px; font-weight: 600; line-height: 1.35; }
#tree h3 { font-size: 14px; font-weight: 600; }
p { white-space: pre-wrap; }
.muted { color: var(--color-text-secondary, light-dark(#56636c, #a3b0b9)); }
.success { color: var(--color-text-success, light-dark(#17693b, #7fd6a2)); }
.warning { color: var(--color-text-warning, light-dark(#8a5200, #f0bd6b)); }
.danger { color: var(--color-text-danger, light-dark(#b3261e, #f2b8b5)); }
.badge {
  justify-self: start; align-self: center; padding: 1px 10px; font-size: 0.9em; font-weight: 500;
  border: 1px solid currentcolor; border-radius: 999px;
}
pre {
  padding: 10px 12px; overflow: auto; max-height: 360px; white-space: pre; overflow-wrap: normal;
  font: 0.93em/1.5 var(--font-mono, ui-monospace, monospace); border-radius: var(--border-radius-md, 8px);
  background: var(--color-background-secondary, light-dark(#f4f6f8, #262e33));
}
img { max-width: 100%; height: auto; border-radius: var(--border-radius-md, 8px); }
a { color: var(--color-text-info, light-dark(#0b5cad, #8cc2ff)); justify-self: start; }
button { justify-self: start; }
button.danger { border-color: currentcolor; background: transparent; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; overflow-wrap: normal; }
caption { text-align: start; font-weight: 600; padding-bottom: 6px; }
th, td { padding: 6px 14px 6px 0; text-align: start; vertical-align: top; unicode-bidi: isolate; }
th { font-weight: 500; white-space: nowrap; color: var(--color-text-secondary, light-dark(#56636c, #a3b0b9)); }
tr { border-bottom: 1px solid var(--color-border-primary, light-dark(#e3e8ec, #333d43)); }
td.number, th.number { text-align: end; font-variant-numeric: tabular-nums; }
figcaption { font-weight: 600; margin-bottom: 6px; }
figure { position: relative; min-width: 0; }
svg { display: block; max-width: 100%; font-size: 12px; }
svg text { fill: var(--color-text-secondary, light-dark(#56636c, #a3b0b9)); }
svg .axis { stroke: var(--color-border-primary, light-dark(#d9dfe4, #39444b)); }
svg .slice { stroke: var(--color-background-primary, light-dark(#ffffff, #1b2125)); stroke-width: 2; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 6px 0 0; font-size: 0.93em; }
.legend li { gap: 7px; }
.swatch { width: 11px; height: 11px; border-radius: 3px; background: currentcolor; flex: none; }
.s0 { color: light-dark(#2563b8, #6ea8f0); } .s1 { color: light-dark(#c2570c, #f2a05c); }
.s2 { color: light-dark(#14795c, #5cc9a3); } .s3 { color: light-dark(#a3306f, #e58cc0); }
.s4 { color: light-dark(#7a5b00, #d8bb4a); } .s5 { color: light-dark(#5b4bb5, #a99cf5); }
.s6 { color: light-dark(#4d5b66, #aebac4); } .s7 { color: light-dark(#b3261e, #f28b82); }
.hidden { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`

/** The page of `UiApp` and `GeneratedUi`. */
export const uiPage: App.App = /* @__PURE__ */ page(
  "ui",
  "Page",
  `<form id="form" novalidate><fieldset id="fields" aria-label="Page"><div id="tree" tabindex="-1"></div></fieldset></form>`,
  uiScript,
  style
)

/** The result of a tool: a text, and a checked tree for a client that shows pages. */
export const treeResult = (
  text: string,
  tree: Node | undefined
): Effect.Effect<Tool.Answer<never>, never, McpRequest> =>
  Effect.map(App.isSupported, (isShown) =>
    Tool.result({
      content: text,
      ...(isShown && tree !== undefined ? { _meta: { [treeKey]: tree as never } } : undefined)
    }) as never)
