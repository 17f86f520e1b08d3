// Ask the search worker of the built site, as a page does: `node site_search.js SITE QUERY...` prints a line of pages for each.
const { readFileSync, readdirSync } = require("fs");
const [site, ...queries] = process.argv.slice(2);
const workers = `${site}/assets/javascripts/workers`;
const listeners = [];
let answer;
globalThis.self = globalThis;
globalThis.importScripts = () => {};
globalThis.addEventListener = (_type, listener) => listeners.push(listener);
globalThis.postMessage = (message) => (answer = message);
globalThis.Worker = class {
  async postMessage(message) {
    for (const listener of listeners) await listener({ data: message });
  }
};
(0, eval)(readFileSync(`${site}/site/search.js`, "utf8")); // what the site does to a query before the worker gets it
(0, eval)(readFileSync(`${workers}/${readdirSync(workers).find((name) => /^search\..*\.js$/.test(name))}`, "utf8"));
(async () => {
  const worker = new Worker();
  const index = JSON.parse(readFileSync(`${site}/search/search_index.json`, "utf8"));
  await worker.postMessage({ type: 0, data: { ...index, options: {} } });
  for (const query of queries) {
    await worker.postMessage({ type: 2, data: query });
    console.log(answer.data.items.map((sections) => sections[0].location.split("#")[0]).join(" "));
  }
})();
