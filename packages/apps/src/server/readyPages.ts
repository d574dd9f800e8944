/**
 * The pages of the ready apps. They contain no text of a question: their scripts receive the question with the result of
 * the tool, and set it as text. So a server has one page for all of its approvals, and no text is a part of a document.
 */
import * as Effect from "effect/Effect"
import * as App from "./App.ts"
import * as AppHtml from "./AppHtml.ts"
import { approvalScript, choiceScript, formScript, uploadScript } from "../shared/pageScripts.ts"

const style = `
:root { color-scheme: light dark; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0; padding: 20px 24px;
  font: var(--font-text-md-size, 14px)/1.5 var(--font-sans, system-ui, sans-serif);
  background: var(--color-background-primary, light-dark(#ffffff, #1b2125));
  color: var(--color-text-primary, light-dark(#1c2429, #e6edf1));
  overflow-wrap: anywhere;
}
main { max-width: 640px; }
h1, legend { margin: 0; padding: 0; font-size: 16px; font-weight: 600; line-height: 1.35; }
h1, legend, .text { unicode-bidi: isolate; }
fieldset { margin: 0; padding: 0; border: 0; min-width: 0; }
.details {
  margin: 8px 0 0; max-height: 320px; overflow: auto; white-space: pre-wrap;
  color: var(--color-text-secondary, light-dark(#56636c, #a3b0b9));
}
.actions { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 16px; }
button {
  min-height: 36px; padding: 6px 16px; font: inherit; font-weight: 500; cursor: pointer; max-width: 100%;
  border-radius: var(--border-radius-md, 8px);
  border: 1px solid var(--color-border-primary, light-dark(#c6ced4, #46525a));
  background: var(--color-background-secondary, light-dark(#f4f6f8, #262e33)); color: inherit;
}
button.primary {
  border-color: transparent;
  background: var(--color-background-inverse, light-dark(#1c2429, #e6edf1));
  color: var(--color-text-inverse, light-dark(#ffffff, #14191c));
}
button:disabled { opacity: 0.55; cursor: default; }
:focus-visible { outline: 2px solid var(--color-ring-primary, light-dark(#1f6feb, #6cb2ff)); outline-offset: 2px; }
.options { display: grid; gap: 8px; margin-top: 14px; }
.option {
  display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; align-items: start; padding: 10px 14px; cursor: pointer;
  border: 1px solid var(--color-border-primary, light-dark(#d9dfe4, #39444b)); border-radius: var(--border-radius-md, 8px);
}
.option:hover, .option:has(:checked) { background: var(--color-background-secondary, light-dark(#f4f6f8, #262e33)); }
.option:has(:checked) { border-color: currentcolor; }
.option input { margin: 3.5px 0 0; accent-color: currentcolor; }
.option .second { grid-column: 2; }
.second { font-size: 0.93em; color: var(--color-text-secondary, light-dark(#56636c, #a3b0b9)); }
.drop {
  display: grid; justify-items: center; gap: 8px; margin-top: 14px; padding: 22px 16px; text-align: center;
  border: 1.5px dashed var(--color-border-primary, light-dark(#b4bec5, #56636c)); border-radius: var(--border-radius-md, 8px);
}
.drop.over { border-color: currentcolor; background: var(--color-background-secondary, light-dark(#f4f6f8, #262e33)); }
.drop input { position: absolute; opacity: 0; width: 1px; height: 1px; pointer-events: none; }
.drop label {
  padding: 6px 16px; font-weight: 500; cursor: pointer; border-radius: var(--border-radius-md, 8px);
  border: 1px solid var(--color-border-primary, light-dark(#c6ced4, #46525a));
  background: var(--color-background-secondary, light-dark(#f4f6f8, #262e33));
}
.drop input:focus-visible + label { outline: 2px solid var(--color-ring-primary, light-dark(#1f6feb, #6cb2ff)); outline-offset: 2px; }
fieldset:disabled .drop label { opacity: 0.55; cursor: default; }
ul { list-style: none; margin: 12px 0 0; padding: 0; display: grid; gap: 6px; }
ul:empty { display: none; }
li { display: flex; gap: 12px; align-items: center; }
li .name { flex: 1; min-width: 0; }
li .second { white-space: nowrap; }
li button { min-height: 28px; padding: 2px 10px; font-size: 0.93em; }
fieldset:disabled li button { display: none; }
.fields { display: grid; gap: 16px; margin-top: 16px; }
.field { display: grid; gap: 4px; justify-items: start; }
.field > label, .field > legend { font-size: inherit; font-weight: 500; }
.field > :is(input, select, textarea) {
  width: 100%; min-height: 36px; padding: 6px 10px; font: inherit; color: inherit;
  border-radius: var(--border-radius-md, 8px);
  border: 1px solid var(--color-border-primary, light-dark(#c6ced4, #46525a));
  background: var(--color-background-primary, light-dark(#ffffff, #14191c));
}
.field > :is([type="number"], [type="date"], [type="datetime-local"], select) { width: auto; min-width: min(100%, 220px); max-width: 100%; }
.field > textarea { min-height: 96px; resize: vertical; }
.field > [aria-invalid="true"] { border-color: var(--color-text-danger, light-dark(#b3261e, #f2b8b5)); }
.check { display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; align-items: start; cursor: pointer; }
.check input { margin: 3.5px 0 0; accent-color: currentcolor; }
.checks { display: grid; gap: 6px; margin-top: 4px; }
.problem { color: var(--color-text-danger, light-dark(#b3261e, #f2b8b5)); font-size: 0.93em; }
.problem:empty { display: none; }
progress { width: 100%; margin-top: 14px; accent-color: light-dark(#1c2429, #e6edf1); }
#note { margin: 14px 0 0; white-space: pre-wrap; }
#note:empty { display: none; }
#note:focus { outline: none; }
#note.error { color: var(--color-text-danger, light-dark(#b3261e, #f2b8b5)); }
`

// The page reports each change of the note to screen readers, and has the focus when the buttons are gone.
const note = `<p id="note" class="text" dir="auto" role="status" aria-live="polite" tabindex="-1"></p>`

/** A page of this package. `own` is the style that only this page has. */
export const page = (name: string, title: string, body: string, script: string, own = ""): App.App =>
  App.make(`ui://skein/${name}`, {
    title,
    prefersBorder: true,
    html: Effect.sync(() =>
      AppHtml.document({ title, style: style + own, body: `<main>\n${body}\n${note}\n</main>`, withView: true, script })
    )
  })

/** The page of `Approval`. */
export const approvalPage: App.App = /* @__PURE__ */ page(
  "approval",
  "Approval",
  `<h1 id="title" class="text" dir="auto"></h1>
<p id="details" class="details text" dir="auto" hidden></p>
<div id="actions" class="actions" role="group" aria-labelledby="title" hidden>
<button id="approve" type="button" class="primary text" dir="auto" aria-describedby="title"></button>
<button id="decline" type="button" class="text" dir="auto" aria-describedby="title"></button>
</div>`,
  approvalScript
)

/** A question with inputs: `inside` its fieldset, whose legend is the title, and after it the buttons. */
const questionForm = (inside: string, actions: string, before = ""): string =>
  `<form id="form" novalidate hidden>
<fieldset id="fields" aria-describedby="details">
<legend id="title" class="text" dir="auto"></legend>
<p id="details" class="details text" dir="auto" hidden></p>
${inside}
</fieldset>
${before}<div id="actions" class="actions">${actions}</div>
</form>`

/** The page of `Choice`. */
export const choicePage: App.App = /* @__PURE__ */ page(
  "choice",
  "Choice",
  /* @__PURE__ */ questionForm(
    `<div id="options" class="options"></div>`,
    `<button id="choose" class="primary text" dir="auto"></button>`
  ),
  choiceScript
)

/** The page of `Form`. */
export const formPage: App.App = /* @__PURE__ */ page(
  "form",
  "Form",
  /* @__PURE__ */ questionForm(
    `<div id="inputs" class="fields"></div>`,
    `<button id="submit" class="primary text" dir="auto"></button>`
  ),
  formScript
)

/** The page of `Upload`. */
export const uploadPage: App.App = /* @__PURE__ */ page(
  "upload",
  "Upload",
  /* @__PURE__ */ questionForm(
    `<div id="drop" class="drop">
<input id="files" type="file" aria-describedby="limits"><label id="pick" for="files"></label>
<span id="limits" class="second text"></span>
</div>
<ul id="list" aria-label="Chosen files"></ul>`,
    `<button id="upload" class="primary text" dir="auto" disabled></button>
<button id="cancel" type="button" hidden>Cancel</button>`,
    `<progress id="progress" aria-label="Progress of the upload" value="0" hidden></progress>\n`
  ),
  uploadScript
)
