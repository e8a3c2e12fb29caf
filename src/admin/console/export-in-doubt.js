/** Downloads the payments in doubt as the filter lists them: as CSV for a spreadsheet and for the bank, or as JSON. */

import { readText } from './connection.js';
import { showNotice } from './dialogs.js';

const mediaTypes = { csv: 'text/csv', json: 'application/json' };

/** @param element contains a button with `data-format` for each format. @param filter of in-doubt-filter.js */
export function createExport(element, filter) {
  element.addEventListener('click', async ({ target }) => {
    const format = target.closest('button')?.dataset.format;
    if (!format) return;
    try {
      const query = new URLSearchParams({ ...filter.values(), format });
      const text = await readText(`/in-doubt/export?${query}`, mediaTypes[format]);
      download(new Blob([text], { type: mediaTypes[format] }), `penstock-in-doubt-${fileTime()}.${format}`);
    } catch ({ message }) {
      showNotice(`Not exported: ${message}`);
    }
  });
}

function download(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** As the gateway names the file: `20261123T145000Z`. */
const fileTime = () => new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
