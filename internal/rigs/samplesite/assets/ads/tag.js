// The third party's tag: a classic script that runs before the shop's modules.
(function () {
  var base = 'https://widgets.example-ads.test';
  var visit = Math.random().toString(36).slice(2, 12);
  var slot = document.querySelector('[data-ad-slot]');
  if (slot) {
    var frame = document.createElement('iframe');
    frame.title = 'Advertisement';
    frame.src = base + '/frame?slot=' + slot.dataset.adSlot + '&cb=' + visit;
    slot.append(frame);
  }
  new Image().src = base + '/pixel.gif?v=' + visit + '&t=' + Date.now();
})();
